package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// TestDeduplicationDestroysSeconds runs VictoriaMetrics with the deduplication that its documentation prescribes for
// pairs of servers. The command verify names the cause. After a restart with -dedup.minScrapeInterval=1ms the command
// writes the missing seconds, and then finds nothing.
func TestDeduplicationDestroysSeconds(t *testing.T) {
	t.Parallel()
	const seconds, interval = 240, 15
	command := buildWindowstat(t)
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	p := logPaced(t, time.Now().Add(-(seconds+10)*time.Second), log)
	begin := p.second
	for range seconds {
		p.tick()
	}
	end := p.second
	p.end(t)
	vm := prepareServer(t, "victoria", victoria)
	plain := slices.Clip(vm.args)
	vm.args = append(plain, fmt.Sprintf("-dedup.minScrapeInterval=%ds", interval))
	vm.start(t)

	verified := func(more ...string) (string, error) {
		out, err := output(t.Context(), ".", append([]string{
			command, "verify", "--dir", log.Dir, "--url", "http://" + vm.addr,
			"--label", "job=pairs", "--label", "instance=e2e",
			"--from", strconv.FormatInt(begin, 10), "--to", strconv.FormatInt(end-1, 10), "--delay", "1s",
		}, more...)...)
		return string(out), err
	}
	// held returns the passes in the database, by second.
	held := func() map[int64]float64 {
		all := map[int64]float64{}
		passes := `windowstat_persecond_pass{job="pairs",resource="steady"}[10m]`
		for _, x := range vm.queryAt(t, passes, float64(end-1)) {
			for _, v := range x.Values {
				all[v.at/1000] = v.value
			}
		}
		return all
	}
	if out, err := verified("--new"); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	deadline := time.Now().Add(catchUp)
	for len(held()) < seconds/interval && time.Now().Before(deadline) {
		vm.show(t)
		time.Sleep(200 * time.Millisecond)
	}
	busiest, highest := 0.0, 0.0
	kept := held()
	for second := begin; second < end; second++ {
		passed := float64(p.calls(0, second).pass)
		highest = max(highest, passed)
		v, ok := kept[second]
		busiest = max(busiest, v)
		if want := second%interval == 0 || second == end-1; ok != want || ok && v != passed {
			t.Errorf("second %d is stored: %v, want %v; it has %v calls, want %v", second, ok, want, v, passed)
		}
	}
	t.Logf("%d of %d seconds remain; the busiest has %v calls where %v is true", len(kept), seconds, busiest, highest)
	out, err := verified()
	for _, want := range []string{"one second of every 15", "-dedup.minScrapeInterval=15s"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("no %q in %v:\n%s", want, err, out)
		}
	}

	vm.end(syscall.SIGTERM)
	vm.args = append(plain, "-dedup.minScrapeInterval=1ms")
	vm.start(t)
	out, err = verified("--heal")
	if want := "no sample is missing, different or extra"; err != nil || !strings.Contains(out, want) {
		t.Errorf("no %q in %v:\n%s", want, err, out)
	}
	if n := len(held()); n != seconds {
		t.Errorf("%d seconds after the heal, want %d", n, seconds)
	}
}
