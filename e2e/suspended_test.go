package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// suspendedFor is the duration of each stop in [TestSuspended], unless $WINDOWSTAT_E2E_SUSPENDED sets another one.
const suspendedFor = 8 * time.Second

// TestSuspended stops a service under load with SIGSTOP, as a suspended machine does, twice. Its metric log and its
// pushes continue within seconds, and every server has every row of the log.
func TestSuspended(t *testing.T) {
	t.Parallel()
	pause := suspendedFor
	if s := os.Getenv("WINDOWSTAT_E2E_SUSPENDED"); s != "" {
		var err error
		if pause, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	type way struct {
		*server
		job job
	}
	var ways []way
	for _, p := range []program{prometheus3, victoria} {
		s := prepareServer(t, p.name, p)
		path, name := "/api/v1/write", clusterJob
		if s.isVictoria {
			s.args = append(s.args, "-dedup.minScrapeInterval=1ms") // of samples that are sent twice
			path, name = "/api/v1/import/prometheus", importedJob
		}
		s.start(t)
		c.push += " http://" + s.addr + path
		ways = append(ways, way{s, jobNamed(name)})
	}
	c.start(t)
	t.Cleanup(c.kill)
	for range 2 {
		time.Sleep(5 * time.Second)
		if err := c.process.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		if err := c.process.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	end := time.Now().Unix() - 1
	c.awaitLogged(t, end)
	rows := c.rows(t, end, 13)
	deadline := time.Now().Add(catchUp)
	for _, x := range ways {
		t.Run(x.name, func(t *testing.T) {
			await(t, x.server, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, x.job.name), end,
				deadline)
			samples := 0
			for _, f := range fields {
				samples += checkPushed(t, x.server, x.job, f, rows, nil, end)
			}
			t.Logf("%d samples", samples)
		})
	}
}
