package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

// Environment variables that make the test's executable run as a service of [TestHealAtRandom]: the begin of its clock,
// and the number of files in its log.
const (
	childBegins = "WINDOWSTAT_E2E_BEGINS"
	childFiles  = "WINDOWSTAT_E2E_FILES"
	childKeeps  = "WINDOWSTAT_E2E_KEEPS"
)

// healHistory is the maximum history that a service keeps for scrapers.
const healHistory = 2 * time.Minute

// counted is a service's report of its counts in a second. The service writes it to a separate file next to the log
// before the second is sealed.
type counted struct {
	Second, Run int64
	Calls       map[string]count
}

// MarshalJSON and UnmarshalJSON are necessary because a count has no exported fields.
func (c count) MarshalJSON() ([]byte, error) { return json.Marshal([2]int{c.pass, c.block}) }

func (c *count) UnmarshalJSON(b []byte) error {
	var both [2]int
	err := json.Unmarshal(b, &both)
	c.pass, c.block = both[0], both[1]
	return err
}

const truthFile = "truth.json"

// runPacedChild runs a service whose parent moves its clock: GET /tick?n=20 makes it work for 20 seconds. Periodically
// the service has not written a second to its log before the next tick, so a kill may lose rows.
func runPacedChild(dir, addr string) error {
	begin, err := strconv.ParseInt(os.Getenv(childBegins), 10, 64)
	if err != nil {
		return err
	}
	files, err := strconv.Atoi(os.Getenv(childFiles))
	if err != nil {
		return err
	}
	history, err := time.ParseDuration(os.Getenv(childKeeps))
	if err != nil {
		return err
	}
	o := metriclog.Options{
		Dir: filepath.Join(dir, "log"), App: "e2e", MaxFileSize: 20_000, MaxFiles: files,
		Logger: slog.New(slog.DiscardHandler),
	}
	last, err := metriclog.Last(o)
	if err != nil {
		return err
	}
	clock, second := newClock(middle(begin)), begin
	c, err := collector.New(collector.Options{Now: clock.now, After: last, Windows: node.Options{History: history}})
	if err != nil {
		return err
	}
	log, err := metriclog.New(c, o)
	if err != nil {
		return err
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{Log: log, Logger: o.Logger})
	if err != nil {
		return err
	}
	truth, err := os.OpenFile(filepath.Join(dir, truthFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	tick := func() error {
		did := counted{second, c.RunID(), map[string]count{}}
		for i, name := range []string{"steady", "now and then", "re\"fus\\ed"} {
			n := count{1 + rand.IntN(9), rand.IntN(3)}
			if i > 0 && rand.IntN(3) > 0 {
				continue
			}
			for range n.pass {
				e := c.Resource(name).Enter()
				e.Exit(nil)
			}
			for range n.block {
				c.Resource(name).Block("paced")
			}
			did.Calls[name] = n
		}
		line, err := json.Marshal(did)
		if err == nil {
			_, err = truth.Write(append(line, '\n'))
		}
		second++
		clock.set(middle(second))
		if err == nil && rand.IntN(4) > 0 {
			err = log.Flush()
		}
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics/seconds", page)
	mux.HandleFunc("/tick", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		for range n {
			if err := tick(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
	})
	ended := make(chan error, 1)
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) {
		page.Save(r.Context())
		if err := log.Flush(); err != nil {
			ended <- err
		}
		ended <- log.Close()
	})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, ConnState: page.ConnState}
	go func() { ended <- server.Serve(l) }()
	return <-ended
}

// pacedChild manages such a service: a sequence of processes with one log.
type pacedChild struct {
	child
	second int64 // the open second
	files  int
	keeps  time.Duration // history of the next process
}

func (c *pacedChild) start(t *testing.T) {
	t.Helper()
	c.env = []string{
		fmt.Sprint(childBegins, "=", c.second), fmt.Sprint(childFiles, "=", c.files),
		fmt.Sprint(childKeeps, "=", c.keeps),
	}
	c.addr = freeAddress(t)
	c.child.start(t)
}

// live makes the service work for some seconds.
func (c *pacedChild) live(t *testing.T, seconds int) {
	t.Helper()
	c.ask(t, fmt.Sprint("/tick?n=", seconds))
	c.second += int64(seconds)
}

func (c *pacedChild) ask(t *testing.T, path string) {
	t.Helper()
	resp, err := http.Get("http://" + c.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(resp.Body)
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, said)
	}
}

// killWithin kills the process after some time. The process works for at most 20 seconds in this time.
func (c *pacedChild) killWithin(t *testing.T, d time.Duration) {
	t.Helper()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if resp, err := http.Get("http://" + c.addr + "/tick?n=20"); err == nil {
			_ = resp.Body.Close()
		}
	}()
	time.Sleep(d)
	c.kill()
	<-asked
	c.second += 20
}

// stop ends the process, by an orderly shutdown or by a kill.
func (c *pacedChild) stop(t *testing.T, well bool) {
	t.Helper()
	if !well {
		c.kill()
		return
	}
	if resp, err := http.Get("http://" + c.addr + "/end"); err == nil { // the process may exit before it responds
		_ = resp.Body.Close()
	}
	if err := c.process.Wait(); err != nil {
		t.Errorf("the service does not end well: %v", err)
	}
}

// truth returns the counts that the services reported, by second.
func (c *pacedChild) truth(t *testing.T) map[int64]counted {
	t.Helper()
	f, err := os.Open(filepath.Join(c.dir, truthFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[int64]counted{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var x counted
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if before, ok := all[x.Second]; ok {
			t.Fatalf("second %d of runs %d and %d", x.Second, before.Run, x.Run)
		}
		all[x.Second] = x
	}
	return all
}
