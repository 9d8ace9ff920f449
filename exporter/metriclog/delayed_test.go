package metriclog_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// delayedLog returns another log of the same Collector.
func (r *rig) delayedLog(t *testing.T, o metriclog.Options) *rig {
	t.Helper()
	o.Dir, o.App, o.Location, o.Logger = t.TempDir(), "shop", time.UTC, slog.New(slog.DiscardHandler)
	w, err := metriclog.New(r.Collector, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &rig{Collector: r.Collector, Writer: w, dir: o.Dir}
}

// randomCalls makes random calls for the given number of seconds. New resources appear, some calls never end, and the
// clock steps. It calls each after every second.
func (r *rig) randomCalls(t *testing.T, seconds int, each func()) {
	t.Helper()
	random := rand.New(rand.NewPCG(4, 4))
	for i := range seconds {
		for range random.IntN(12) {
			o := []collector.CallOption{collector.Origin(fmt.Sprint(random.IntN(3)))}
			if random.IntN(2) == 0 {
				o = append(o, collector.Inbound())
			}
			_, e, err := r.Enter(t.Context(), fmt.Sprint("r", random.IntN(i/20+2)), o...)
			if err != nil {
				t.Fatal(err)
			}
			r.now = r.now.Add(time.Duration(random.IntN(9)) * ms)
			if random.IntN(30) > 0 {
				e.Exit(nil)
			}
		}
		r.now = r.now.Truncate(time.Second).Add(time.Second)
		if random.IntN(30) == 0 {
			r.now = r.now.Add(time.Duration(random.IntN(5)) * time.Second)
		}
		each()
	}
}

// A log that is written minutes after the calls is identical to a log that is written every second.
func TestDelayedLogIsIdentical(t *testing.T) {
	for _, zeroRows := range []bool{false, true} {
		o := metriclog.Options{ZeroRows: zeroRows, MaxFileSize: 100_000, MaxFiles: 100}
		r := newRig(t, start, o)
		delayed := r.delayedLog(t, o)
		n := 0
		r.randomCalls(t, 400, func() {
			r.flush(t)
			if n++; n%150 == 0 {
				delayed.flush(t)
			}
		})
		delayed.flush(t)
		got, want := delayed.contents(t), r.contents(t)
		if len(want) < 5 || len(got) != len(want) {
			t.Fatalf("%d files, %d files of the delayed log", len(want), len(got))
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("zero rows %t: %s differs", zeroRows, name)
			}
		}
		if a, b := r.metrics(), delayed.metrics(); fmt.Sprint(a) != fmt.Sprint(b) ||
			a["metriclog_lost_seconds_total"] != 0 {
			t.Errorf("metrics %v, of the delayed log %v", a, b)
		}
		delayed.checkIndexes(t)
	}
}

// contents returns the contents of the log's files by name.
func (r *rig) contents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range r.files(t) {
		if strings.HasPrefix(name, today) {
			all[name] = r.read(t, name)
		}
	}
	return all
}

// Only seconds older than the history are lost. All others have the same lines as in a log written in time.
func TestLogDelayedBeyondHistory(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	delayed := r.delayedLog(t, metriclog.Options{})
	r.randomCalls(t, 900, func() { r.flush(t) })
	delayed.flush(t)
	lost := int(delayed.metrics()["metriclog_lost_seconds_total"])
	if lost < 200 || lost > 500 {
		t.Errorf("%d lost seconds, want 200 to 500", lost)
	}
	all := map[string]bool{}
	for line := range strings.Lines(r.read(t, today)) {
		all[line] = true
	}
	complete := 0
	for line := range strings.Lines(delayed.read(t, today)) {
		if !all[line] {
			t.Fatalf("the log written in time has no line %s", line)
		}
		complete++
	}
	if complete < 600 {
		t.Errorf("%d rows, want at least 600", complete)
	}
}
