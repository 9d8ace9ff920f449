package metriclog_test

import (
	"fmt"
	"os"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A finished second is written, and then found by its time and resource.
func Example() {
	dir, err := os.MkdirTemp("", "log")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// The clock of the example. Without Now, the Collector uses the real clock.
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := metriclog.Options{Dir: dir, App: "shop", Location: time.UTC}
	last, err := metriclog.Last(o) // last second of the previous process
	if err != nil {
		panic(err)
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, After: last})
	if err != nil {
		panic(err)
	}
	w, err := metriclog.New(c, o)
	if err != nil {
		panic(err)
	}
	defer w.Close()

	_ = c.Resource("checkout").Do(func() error { return nil })
	now = now.Add(time.Second)
	if err := w.Flush(); err != nil { // Run calls Flush every second
		panic(err)
	}

	q := metriclog.Query{Match: func(name string) bool { return name == "checkout" }}
	rows, err := metriclog.Searcher{Dir: dir, App: "shop"}.Search(q)
	if err != nil {
		panic(err)
	}
	defer rows.Close()
	for row := range rows.All() {
		fmt.Println(row.Start.Format(time.DateTime), row.Resource, row.Pass)
	}
	// Output: 2026-01-02 03:04:05 checkout 1
}
