package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// namesFile is the state file of the metric log with the names that are earned.
const namesFile = "names.json"

// saveNamesInterval is how often they are saved: what is earned later must be earned again after a crash.
const saveNamesInterval = time.Minute

// KeepNames keeps earned names beyond the end of the process, if there is a metric log: they are saved every minute, and when the ways out
// end. Failures are logged: the names must be earned again then.
func (t *Telemetry) KeepNames(names *httpstat.Names) {
	t.Collector.Publish(names.Metrics()...)
	if t.Log == nil {
		return
	}
	path, err := t.Log.StateFile(namesFile)
	if err == nil {
		err = names.Load(path)
	}
	if err != nil {
		t.Logger.Warn("the names that were earned before are not known", "err", err)
	}
	if path == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var saving sync.WaitGroup
	saving.Go(func() {
		ticker := time.NewTicker(saveNamesInterval)
		defer ticker.Stop()
		for failing := false; ; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
			err := names.Save(path)
			if err != nil && !failing {
				t.Logger.Error("cannot save the names that were earned", "err", err)
			}
			if failing = err != nil; ctx.Err() != nil {
				return
			}
		}
	})
	t.before = append(t.before, func() { cancel(); saving.Wait() })
}
