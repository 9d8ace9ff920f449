package prom_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Every second of every page has the run of the process that counted it, for any selection. This includes idle seconds
// and seconds of the previous process from the log.
func TestRunOfEverySecond(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := at.Unix()
	p := begin(t, dir, &at)
	before := p.stats.RunID()
	for range 3 {
		p.stats.Resource("a").Block("")
		at = at.Add(time.Second)
	}
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	at = at.Add(10 * time.Second) // no process runs
	p = p.again(t, dir, &at)
	p.stats.Resource("a").Block("")
	at = at.Add(5 * time.Second)
	want := ""
	for i := range int64(3) {
		want += fmt.Sprintf("windowstat_persecond_run %d %d000\n", before, first+i)
	}
	for i := range int64(5) {
		want += fmt.Sprintf("windowstat_persecond_run %d %d000\n", p.stats.RunID(), first+13+i)
	}
	if before == p.stats.RunID() || before >= 1<<53 || before <= 0 {
		t.Errorf("runs %d and %d", before, p.stats.RunID())
	}
	for i, query := range []string{
		"", "metric=persecond_block", "resource=a",
		"metric=persecond_pass&resource=nobody", "histogram=classic", "metric=persecond_run",
	} {
		body := p.whole(fmt.Sprintf("cursor=run%d&%s", i, query)).Body.String()
		got := ""
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "windowstat_persecond_run") {
				got += line
			}
		}
		if got != want {
			t.Errorf("%q: got\n%swant\n%s", query, got, want)
		}
	}
}
