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

// What tells the test's executable that it is a service of [TestHealAtRandom]: when its clock begins, and how many files its log has.
const (
	childBegins = "WINDOWSTAT_E2E_BEGINS"
	childFiles  = "WINDOWSTAT_E2E_FILES"
	childKeeps  = "WINDOWSTAT_E2E_KEEPS"
)

// healHistory is the longest time that a service keeps its seconds for scrapers.
const healHistory = 2 * time.Minute

// counted is what a service says that it counted in a second, in a file of its own beside the log, before the second is sealed.
type counted struct {
	Second, Run int64
	Calls       map[string]count
}

// MarshalJSON and UnmarshalJSON: a count has no exported fields.
func (c count) MarshalJSON() ([]byte, error) { return json.Marshal([2]int{c.pass, c.block}) }

func (c *count) UnmarshalJSON(b []byte) error {
	var both [2]int
	err := json.Unmarshal(b, &both)
	c.pass, c.block = both[0], both[1]
	return err
}

const truthFile = "truth.json"

// runPacedChild is a service whose clock its parent moves: GET /tick?n=20 has it work for 20 seconds. Now and then it does not get to
// write a second to its log before it is asked to go on, so that a kill may cost rows.
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
	o := metriclog.Options{Dir: filepath.Join(dir, "log"), App: "e2e", MaxFileSize: 20_000, MaxFiles: files, Logger: slog.New(slog.DiscardHandler)}
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

// pacedChild is such a service, one process after the other, on one log.
type pacedChild struct {
	child
	second int64 // the one that is open
	files  int
	keeps  time.Duration // history of the next process
}

func (c *pacedChild) start(t *testing.T) {
	t.Helper()
	c.env = []string{fmt.Sprint(childBegins, "=", c.second), fmt.Sprint(childFiles, "=", c.files), fmt.Sprint(childKeeps, "=", c.keeps)}
	c.addr = freeAddress(t)
	c.child.start(t)
}

// live has the service work for some seconds.
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

// killWithin kills the process after some time, in which it works for at most 20 seconds.
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

// stop ends the process, well or not.
func (c *pacedChild) stop(t *testing.T, well bool) {
	t.Helper()
	if !well {
		c.kill()
		return
	}
	if resp, err := http.Get("http://" + c.addr + "/end"); err == nil { // the process may be gone before it has answered
		_ = resp.Body.Close()
	}
	if err := c.process.Wait(); err != nil {
		t.Errorf("the service does not end well: %v", err)
	}
}

// truth is what the services say that they counted, by second.
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
