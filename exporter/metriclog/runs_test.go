package metriclog_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// processes starts processes on one log, one after the other. Each counts ten seconds.
type processes struct {
	*testing.T
	dir string
	at  time.Time
}

// start starts a process and returns its Writer, its run, and its first second.
func (p *processes) start() (w *metriclog.Writer, run, first int64) {
	p.Helper()
	o := metriclog.Options{Dir: p.dir, App: "shop", Location: time.UTC, Logger: slog.New(slog.DiscardHandler)}
	last, err := metriclog.Last(o)
	if err != nil {
		p.Fatal(err)
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return p.at }, After: last})
	if err != nil {
		p.Fatal(err)
	}
	if w, err = metriclog.New(c, o); err != nil {
		p.Fatal(err)
	}
	first = p.at.Unix()
	for range 10 {
		c.Resource("a").Block("")
		p.at = p.at.Add(time.Second)
		if err := w.Flush(); err != nil {
			p.Fatal(err)
		}
	}
	return w, c.RunID(), first
}

// path returns the path of the runs file.
func (p *processes) path() string { return filepath.Join(p.dir, "shop-runs.json") }

// diskFull makes writes of the runs file fail, as on a full disk, or lets them succeed again.
func (p *processes) diskFull(full bool) {
	p.Helper()
	err := os.Remove(p.path() + ".new")
	if full {
		err = os.Mkdir(p.path()+".new", 0o700)
	}
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
}

// If the disk is full when a process starts, the process retries to write the runs file every second.
func TestRunsFileIsRetried(t *testing.T) {
	p := &processes{T: t, dir: t.TempDir(), at: start}
	p.diskFull(true)
	w, run, first := p.start()
	if list, err := runs.Read(p.path()); len(list) != 0 || err != nil {
		t.Fatalf("runs file on the full disk: %v, %v", list, err)
	}
	p.diskFull(false)
	p.at = p.at.Add(time.Second)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if list, err := runs.Read(p.path()); err != nil || len(list) != 1 || list[0].ID != run || list[0].First != first {
		t.Errorf("the runs file has %+v, %v; want run %d from second %d", list, err, run, first)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Runs that are missing in the runs file are found in the rows. Their seconds are not attributed to the run before.
func TestRunsFromRows(t *testing.T) {
	for name, spoil := range map[string]func(p *processes, process int){
		"the disk was full": func(p *processes, process int) { p.diskFull(process == 1) },
		"a copied log with an older file": func(p *processes, process int) {
			if process == 2 {
				list, err := runs.Read(p.path())
				if err != nil || len(list) != 2 {
					p.Fatal(list, err)
				}
				older := runs.Merge(list[:1], nil)
				older[0].Last = 0
				writeJSON(p.T, p.path(), older)
			}
		},
		"a lost file": func(p *processes, process int) {
			if process == 2 {
				if err := os.Remove(p.path()); err != nil {
					p.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &processes{T: t, dir: t.TempDir(), at: start}
			var ids, firsts []int64
			for i := range 3 {
				spoil(p, i)
				w, run, first := p.start()
				ids, firsts = append(ids, run), append(firsts, first)
				if i == 2 {
					for j, id := range ids {
						for second := firsts[j]; second < firsts[j]+10; second++ {
							if got := w.Runs().ID(second); got != id {
								t.Errorf("second %d of process %d has run %d, want %d", second-firsts[j], j, got, id)
							}
						}
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				p.at = p.at.Add(20 * time.Second) // no process runs for 20 seconds
			}
			list, err := metriclog.Searcher{Dir: p.dir}.Runs(start, p.at)
			if err != nil || len(list) != 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			for i, r := range list {
				if r.ID != ids[i] || r.First != firsts[i] || r.Last != firsts[i]+9 {
					t.Errorf("run %d in the rows is %+v, want run %d from second %d", i, r, ids[i], firsts[i])
				}
			}
		})
	}
}

// writeJSON writes v to a file.
func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
