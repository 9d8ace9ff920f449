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

// counts has the counts of one observer for one resource.
type counts struct{ pass, block, complete, exception int64 }

// reconciliation compares the counts of all observers, by resource.
type reconciliation struct {
	sent, counted, scraped, logged map[string]counts
}

// observer counts calls by their responses. It is safe for concurrent use.
type observer struct {
	mu   sync.Mutex
	seen map[string]counts
}

// count counts a call. A failed call passed, too, as in the SDK.
func (o *observer) count(name string, blocked, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.seen[name]
	switch {
	case blocked:
		t.block++
	case failed:
		t.exception++
		fallthrough
	default:
		t.pass++
		t.complete++
	}
	o.seen[name] = t
}

// ErrDifferent means that the counts of two observers differ.
var ErrDifferent = errors.New("the counts differ")

// Reconcile compares the sent calls of each resource with the counts of the Collector, of the metrics page, and of the
// log from a second on, and prints all of them. It returns [ErrDifferent], or an error if the page or the log cannot be
// read.
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
	// Seal first, because the log has sealed seconds only. All observers then have the same last second.
	all := map[string]counts{}
	for _, r := range c.Seal().Resources {
		t := r.View().
			Node().
			Snapshot(c.Timeline().Now(), nil).
			Total // also valid for a resource that was retired just now
		all[r.Name()] = counts{t.Pass, t.Block, t.Complete, t.Exception}
	}
	return all
}

// scraped reads the counts of a metrics page over HTTP, as Prometheus does.
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
	// A resource has a series for each code, so the samples of a family are added up by resource.
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

// logged sums the rows of an application's metric log from a second on.
func logged(log metriclog.Searcher, from time.Time) (map[string]counts, error) {
	const own = 0 // the file name of the demo has no process id
	rows, err := log.Search(metriclog.Query{From: from, PIDs: []int{own}})
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // closing after reading loses nothing
	all := map[string]counts{}
	for row := range rows.All() {
		if row.Resource != collector.InboundTotal { // the sum of other resources
			t := all[row.Resource]
			all[row.Resource] = counts{
				t.pass + row.Pass, t.block + row.Block, t.complete + row.Success, t.exception + row.Exception,
			}
		}
	}
	if n := rows.Malformed(); n > 0 {
		return nil, fmt.Errorf("the metric log in %s has %d malformed lines", log.Dir, n)
	}
	return all, rows.Err()
}

// print prints all counts, and reports whether the observers agree.
func (r reconciliation) print(w io.Writer) bool {
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
			// The table does not show all counts.
			verdict = fmt.Sprintf("DIFFERENT: sent %+v, counted %+v, scraped %+v, logged %+v", sent, counted, scraped,
				logged)
			agree = false
		}
		fmt.Fprintf(w, "%-*s %9d %9d %9d %9d %9d %9d  %s\n", width, name, sent.complete, counted.complete,
			scraped.complete, logged.complete, sent.exception, sent.block, verdict)
	}
	return agree
}
