package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// TestHealOfAReplica has a pair of replicas in a database, and a deploy while one of them is down. This replica lacks
// the last seconds of the previous process and the first seconds of the next process. These seconds are at the edges of
// both runs. The heal must write them, and must write nothing to the other replica.
func TestHealOfAReplica(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	const (
		life = keptSeconds + 60 + 60 // long enough for a heal to recognize replicas
		away = 20                    // before and after the deploy
	)
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	var begin, deploy, end int64 // first seconds, and the last one
	for i := range 2 {
		p := logPaced(t, time.Now().Add(time.Duration(i-2)*(life+10)*time.Second), log)
		if i == 0 {
			begin = p.second
		}
		deploy = p.second
		for range life {
			p.tick()
		}
		end = p.second - 1
		p.end(t)
	}
	for name, p := range map[string]program{"prometheus-3": prometheus3, "victoria": victoria} {
		t.Run(name, func(t *testing.T) { // in sequence: only one command can heal a log at a time
			s := startConfigured(t, name, p, documentedWindow(t, p))
			verified := func(replica string, from, to int64, more ...string) string {
				t.Helper()
				out, err := output(t.Context(), ".", append([]string{
					command, "verify", "--dir", log.Dir, "--from", strconv.FormatInt(from, 10), "--to",
					strconv.FormatInt(to, 10), "--delay", "1s", "--url", "http://" + s.addr,
					"--label", "job=pair", "--label", "instance=shop", "--label", "replica=" + replica,
				}, more...)...)
				if err != nil {
					t.Fatalf("%s: %v", out, err)
				}
				return string(out)
			}
			seconds := func(replica string) int {
				s.show(t)
				n := 0
				for _, x := range s.query(t,
					fmt.Sprintf(`count_over_time(windowstat_persecond_pass{replica=%q,resource="steady"}[15m])`,
						replica)) {
					n += int(x.Value.value)
				}
				return n
			}
			last := deploy - 10 - 1 // last second of the first process, approximately
			verified("a", begin, end, "--new")
			verified("b", begin, last-away, "--new")
			verified("b", deploy+away, end, "--new")
			has := int(min(last-away, begin+life-1)-begin+1) + int(end-(deploy+away)+1) // seconds of the second replica
			deadline := time.Now().Add(catchUp)
			for (seconds("a") < 2*life || seconds("b") < has) && time.Now().Before(deadline) {
				time.Sleep(200 * time.Millisecond)
			}
			if a, b := seconds("a"), seconds("b"); a != 2*life || b != has || b > 2*life-2*away+5 {
				t.Fatalf("the replicas have %d and %d seconds, want %d and %d", a, b, 2*life, has)
			}
			if said := verified("b", begin, end, "--heal"); !strings.Contains(said,
				" 0 refused, 0 unconfirmed, 0 not sent") {
				t.Error(said)
			}
			for _, replica := range []string{"a", "b"} {
				if said := verified(replica, begin, end); seconds(replica) != 2*life ||
					!strings.Contains(said, "no sample is missing") {
					t.Errorf("%s has %d seconds, want %d: %s", replica, seconds(replica), 2*life, said)
				}
			}
		})
	}
}
