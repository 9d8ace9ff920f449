package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Write writes a whole log to an empty database. If the database has a part of the log, use [verify.Check] and
// [verify.Heal].
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "log")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	log, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop"})
	if err != nil {
		panic(err)
	}
	_ = c.Resource("checkout").Do(func() error { return nil })
	now = now.Add(time.Second)
	if err := errors.Join(log.Flush(), log.Close()); err != nil {
		panic(err)
	}

	gap := verify.Gap{Searcher: metriclog.Searcher{Dir: dir, App: "shop"}, From: now.Add(-time.Minute), To: now}
	labels := map[string]string{"job": "shop-seconds", "instance": "shop:9719"}
	var text bytes.Buffer // for promtool tsdb create-blocks-from openmetrics
	target := verify.Target{Push: push.Options{Labels: labels}, OpenMetrics: &text}
	if _, err := verify.Write(context.Background(), gap, target); err != nil {
		panic(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "windowstat_persecond_pass{") {
			fmt.Print(line)
		}
	}
	// Output: windowstat_persecond_pass{instance="shop:9719",job="shop-seconds",resource="checkout"} 1.0 1767323045
}
