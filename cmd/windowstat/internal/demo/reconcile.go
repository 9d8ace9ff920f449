package demo

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// counts has the calls of one resource that one observer has counted.
type counts struct{ pass, block, complete, exception int64 }

// reconciliation has the counts of all observers, by resource: the generator (sent), the Collector (counted), the
// metrics page (scraped), and the metric log (logged).
//
// The generator knows only the status of a response. It therefore counts a 429 as a block, a 5xx as an exception, and
// all other responses as completed calls. Queries of the database are counted by the shop itself, in its handlers.
type reconciliation struct {
	sent, counted, scraped, logged map[string]counts
}

// observer counts calls by their responses, as a client sees them. It is safe for concurrent use.
type observer struct {
	mu   sync.Mutex
	seen map[string]counts
}

// count counts a call that was blocked or has completed. As in the SDK, a failed call has also passed and completed.
func (o *observer) count(name string, blocked, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.seen[name]
	switch {
	case blocked:
		t.block++
	case failed:
		t.exception++
		// A failed call has also passed and completed.
		fallthrough
	default:
		t.pass++
		t.complete++
	}
	o.seen[name] = t
}

// ErrDifferent is the error of [Options.Run] if two observers have different counts for a resource.
var ErrDifferent = errors.New("the counts differ")

// Reconcile compares the sent calls of each resource with the counts of the Collector, of the metrics page, and of the
// metric log. log finds the metric log, whose seconds count from a second on. Reconcile prints all counts to w. It
// returns [ErrDifferent] if they differ, or an error if the page or the log cannot be read.
func (s *Shop) Reconcile(w io.Writer, page string, log metriclog.Searcher, from time.Time) (err error) {
	r := reconciliation{sent: s.sent.seen, counted: counted(s.stats)}
	if r.scraped, err = scraped(page); err != nil {
		return err
	}
	if r.logged, err = logged(log, from); err != nil {
		return err
	}
	if !r.print(w) {
		return ErrDifferent
	}
	return nil
}

// counted returns the counts of the Collector.
func counted(c *collector.Collector) map[string]counts {
	// Seal the open second, because the log has only sealed seconds. Then all observers have the same last second.
	all := map[string]counts{}
	for _, r := range c.Seal().Resources {
		// The view is also valid if the resource was retired just now.
		t := r.View().Node().Snapshot(c.Timeline().Now(), nil).Total
		all[r.Name()] = counts{t.Pass, t.Block, t.Complete, t.Exception}
	}
	return all
}

// scraped reads the counts of the metrics page at url over HTTP, as Prometheus does.
func scraped(url string) (map[string]counts, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	all := map[string]counts{}
	// A resource has a series for each code. Add the series of a resource up.
	for name, add := range map[string]func(*counts, int64){
		"pass_total":      func(t *counts, n int64) { t.pass += n },
		"block_total":     func(t *counts, n int64) { t.block += n },
		"complete_total":  func(t *counts, n int64) { t.complete += n },
		"exception_total": func(t *counts, n int64) { t.exception += n },
	} {
		for _, m := range families[exporter.Namespace+"_"+name].GetMetric() {
			for _, l := range m.Label {
				if l.GetName() == "resource" {
					t := all[l.GetValue()]
					add(&t, int64(m.Counter.GetValue()))
					all[l.GetValue()] = t
				}
			}
		}
	}
	return all, nil
}

// logged adds up the rows of the metric log from a second on, by resource.
func logged(log metriclog.Searcher, from time.Time) (map[string]counts, error) {
	const own = 0 // the names of the demo's files have no process id
	// The log may have an earlier run of the demo, so search only from the first second of this run.
	rows, err := log.Search(metriclog.Query{From: from, PIDs: []int{own}})
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // closing after reading loses nothing
	all := map[string]counts{}
	for row := range rows.All() {
		if row.Resource != collector.InboundTotal { // not a resource, but the sum of several
			t := all[row.Resource]
			all[row.Resource] = counts{
				t.pass + row.Pass, t.block + row.Block, t.complete + row.Success, t.exception + row.Exception,
			}
		}
	}
	// A malformed line could be a lost count. The comparison must not ignore it.
	if n := rows.Malformed(); n > 0 {
		return nil, fmt.Errorf("the metric log in %s has %d malformed lines", log.Dir, n)
	}
	return all, rows.Err()
}

// print prints a line for each resource, and reports whether all observers agree.
func (r reconciliation) print(w io.Writer) bool {
	// A resource may be missing from the map of one observer. Collect the names of all observers, so no difference is
	// lost.
	seen := map[string]bool{}
	width := len("resource")
	for _, observer := range []map[string]counts{r.sent, r.counted, r.scraped, r.logged} {
		for name := range observer {
			seen[name] = true
			width = max(width, len(name))
		}
	}
	agree := true
	fmt.Fprintf(w, "\n%-*s %9s %9s %9s %9s %9s %9s\n", width, "resource", "sent", "counted", "scraped", "logged",
		"failed", "blocked")
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		sent, counted, scraped, logged := r.sent[name], r.counted[name], r.scraped[name], r.logged[name]
		verdict := "equal"
		if counted != sent || scraped != sent || logged != sent {
			// The columns show only some of the counts. Print all counts of a resource that differs.
			verdict = fmt.Sprintf("DIFFERENT: sent %+v, counted %+v, scraped %+v, logged %+v", sent, counted, scraped,
				logged)
			agree = false
		}
		fmt.Fprintf(w, "%-*s %9d %9d %9d %9d %9d %9d  %s\n", width, name, sent.complete, counted.complete,
			scraped.complete, logged.complete, sent.exception, sent.block, verdict)
	}
	return agree
}
