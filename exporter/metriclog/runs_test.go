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

// processes starts one process after the other on one log. Each counts ten seconds.
type processes struct {
	*testing.T
	dir string
	at  time.Time
}

// start starts a process and returns its log, its run, and its first second.
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

func (p *processes) path() string { return filepath.Join(p.dir, "shop-runs.json") }

// full keeps the file of runs from being written, as a full disk does, until it is called again.
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

// The disk is full when a process starts. The file of runs is saved as soon as it can be.
func TestRunsFileIsRetried(t *testing.T) {
	p := &processes{T: t, dir: t.TempDir(), at: start}
	p.diskFull(true)
	w, run, first := p.start()
	if list, err := runs.Read(p.path()); len(list) != 0 || err != nil {
		t.Fatalf("the full disk has %v, %v", list, err)
	}
	p.diskFull(false)
	p.at = p.at.Add(time.Second)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if list, err := runs.Read(p.path()); err != nil || len(list) != 1 || list[0].ID != run || list[0].First != first {
		t.Errorf("the file has %+v, %v; want run %d from %d on", list, err, run, first)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Processes whose runs the file never had are known from their rows, and their seconds are not those of the run before.
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
								t.Errorf("second %d of process %d is of run %d, want %d", second-firsts[j], j, got, id)
							}
						}
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				p.at = p.at.Add(20 * time.Second) // no process runs
			}
			list, err := metriclog.Searcher{Dir: p.dir}.Runs(start, p.at)
			if err != nil || len(list) != 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			for i, r := range list {
				if r.ID != ids[i] || r.First != firsts[i] || r.Last != firsts[i]+9 {
					t.Errorf("run %d of the rows is %+v, want %d from %d on", i, r, ids[i], firsts[i])
				}
			}
		})
	}
}

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
