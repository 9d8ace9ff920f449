package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/push"
)

// A worker that pushes and has no port.
func Example_worker() {
	ctx, cancel := context.WithCancel(context.Background())
	url := receiver()
	work := func(_ context.Context, r *collector.Resource) {
		defer cancel() // stops the worker
		for range 3 {
			_ = r.Do(func() error { return nil })
		}
	}

	// begin worker
	x, err := exporter.New(exporter.Options{App: "indexer", Push: []push.Options{{URL: url}}})
	if err != nil {
		log.Fatal(err)
	}
	go work(ctx, x.Collector.Resource("index"))
	err = x.Run(ctx)
	// end worker

	fmt.Println(err, x.Collector.Resource("index").View().Snapshot(nil).Total.Complete)
	// Output: <nil> 3
}

// A short job. The second that is open at its end is sent, too.
func Example_job() {
	url := receiver()
	run := func() error { return errors.New("the disk is full") }

	// begin job
	x, err := exporter.New(exporter.Options{App: "nightly", Push: []push.Options{{URL: url}}})
	if err != nil {
		log.Fatal(err)
	}
	stop := x.Start()
	err = x.Collector.Resource("import").Do(run)
	err = errors.Join(err, stop())
	// end job

	fmt.Println(err, x.Collector.Resource("import").View().Snapshot(nil).Total.Exception)
	// Output: the disk is full 1
}
