package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

const (
	healRun     = 30 * time.Second // unless $WINDOWSTAT_E2E_HEALED is set
	healRound   = 30 * time.Second
	healBegins  = 50 * time.Minute // before now
	healSpeed   = 40               // seconds of the services in one real second
	healSettled = 280              // seconds after which no scrape adds a second: the history, and four scrapes
)

// TestHealAtRandom makes processes start, end, and change their labels over one log, in fast motion. Responses to the
// servers that scrape them get lost. Services and servers are killed, and the log is cut. Commands heal, some of them
// two at a time, and some are killed. Each service keeps a separate account of its counts. Afterwards every series must
// have the counts of its instance, and no second that belongs to another instance. The report must name the seconds
// that no instance has. The seed repeats the decisions, not their times.
func TestHealAtRandom(t *testing.T) {
	t.Parallel()
	seed, run := uint64(time.Now().UnixNano()), healRun
	if s := os.Getenv("WINDOWSTAT_E2E_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("WINDOWSTAT_E2E_HEALED"); s != "" {
		var err error
		if run, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	command := buildWindowstat(t)
	var servers []*server
	for name, p := range map[string]program{
		"prometheus-3": prometheus3,
		"prometheus-2": prometheus2, "victoria": victoria,
	} {
		s := newServer(t, name, p.path(t), p.name == victoria.name)
		s.configure(t, documentedWindow(t, p))
		if s.isVictoria {
			// VictoriaMetrics caches the result of a matcher. A repeated query therefore finds a new series up to 11 s
			// late, and 11 s are minutes of the services. This flag disables the cache.
			s.args = append(s.args, "-storage.cacheSizeIndexDBTagFilters=1")
		}
		s.start(t)
		servers = append(servers, s)
	}
	slices.SortFunc(servers, func(a, b *server) int { return strings.Compare(a.name, b.name) })
	whole := t // lives longer than a round, as the servers do
	for until, n := time.Now().Add(run), 0; n == 0 || time.Now().Before(until); n++ {
		ok := t.Run(fmt.Sprint("seed ", seed),
			func(t *testing.T) { newHealRound(t, whole, command, seed, n, servers).run() })
		if seed++; !ok {
			return
		}
	}
}

// documentedWindow returns the configuration of a server that accepts samples out of order.
func documentedWindow(t *testing.T, p program) string {
	if p.name == victoria.name {
		return "scrape_configs: []\n"
	}
	return "scrape_configs: []\n" + documented(t, "verify.md", "out_of_order_time_window", "")
}

// labelled holds the labels that identify a service in a database for a command.
type labelled struct{ job, instance string }

func (l labelled) String() string { return l.job + "/" + l.instance }

// heldSeconds is the contents of a server: the number of samples of a second, by labels and resource.
type heldSeconds map[labelled]map[string]map[int64]int

// healRoundRun is a round: a sequence of processes with one log, which all servers scrape.
type healRoundRun struct {
	*testing.T
	*rand.Rand
	whole    *testing.T
	child    *pacedChild
	command  string
	scraping []*healScraper

	present atomic.Int64 // current second of the services

	mu    sync.Mutex
	asked map[*server]map[labelled]map[int]bool // by labels: the processes that were scraped with them
	began []int64                               // begins of the processes

	older         []byte // an earlier content of the file of runs
	heals, healed int
	refused       map[string]int
	notes         []string
}

// note records an event for the report of a failed round.
func (r *healRoundRun) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%s (%d processes began): ", time.Now().Format("05.000"), len(r.began))+
		fmt.Sprintf(format, args...))
}

// healScraper is a server and its targets.
type healScraper struct {
	*server
	jobs  []*healJob
	proxy string // address of the proxy
	n     int    // number of instances
	wrote map[labelled]map[string]map[int64]bool
	story map[labelled]string // by labels: output of the last heal that wrote samples
	// beside has the seconds that a heal wrote to labels although other labels already had them, because both labels
	// scraped the process at the same time. A later check cannot detect this, because scraped samples and healed
	// samples look the same.
	beside map[pairSecond]bool
}

// pairSecond is a second of two labels.
type pairSecond struct {
	who, other labelled
	second     int64
}

// healJob is a job of a server. Two jobs of one server are a pair.
type healJob struct {
	name, instance string
	cursor         int
	instances      []string // all instances of the job so far

	mu            sync.Mutex
	away, swallow time.Time // until then the job gets no response, or the response is lost
	asked         int64     // second of the services at the last request; earlier responses are stored
}

func newHealRound(t, whole *testing.T, command string, seed uint64, n int, servers []*server) *healRoundRun {
	r := &healRoundRun{
		T: t, whole: whole, Rand: rand.New(rand.NewPCG(seed, 0)), command: command,
		asked: map[*server]map[labelled]map[int]bool{}, refused: map[string]int{},
	}
	r.child = &pacedChild{
		child: child{dir: t.TempDir()}, second: time.Now().Add(-healBegins).Unix(),
		files: []int{1000, 10}[r.IntN(2)], keeps: healHistory,
	}
	if err := os.Mkdir(filepath.Join(r.child.dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		x := &healScraper{
			server: s, wrote: map[labelled]map[string]map[int64]bool{}, story: map[labelled]string{},
			beside: map[pairSecond]bool{},
		}
		for _, name := range []string{"a", "b"}[:1+r.IntN(2)] {
			x.jobs = append(x.jobs, &healJob{name: fmt.Sprintf("round-%d-%s", n, name)})
		}
		l := listen(t, "127.0.0.1:0")
		x.proxy = l.Addr().String()
		serve(t, x.handler(r), l)
		r.asked[s] = map[labelled]map[int]bool{}
		r.scraping = append(r.scraping, x)
	}
	return r
}

// handler forwards requests of a server to the current process, at /JOB/INSTANCE/metrics/seconds, unless the job is
// away or loses responses.
func (x *healScraper) handler(r *healRoundRun) http.Handler {
	clients := map[string]*http.Client{}
	for _, j := range x.jobs {
		clients[j.name] = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, MaxConnsPerHost: 1}}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		parts := strings.SplitN(request.URL.Path, "/", 4)
		i := slices.IndexFunc(x.jobs, func(j *healJob) bool { return len(parts) == 4 && j.name == parts[1] })
		if i < 0 {
			return
		}
		j := x.jobs[i]
		j.mu.Lock()
		j.asked = r.present.Load()
		away, swallow := time.Now().Before(j.away), time.Now().Before(j.swallow)
		j.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		r.mu.Lock()
		addr, turn := r.child.addr, len(r.began)-1
		r.mu.Unlock()
		out, err := http.NewRequestWithContext(request.Context(), http.MethodGet, "http://"+addr+"/"+parts[3]+"?"+
			request.URL.RawQuery, nil)
		if err != nil {
			panic(err)
		}
		out.Header, out.Host = request.Header, parts[2]
		resp, err := clients[j.name].Do(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		r.mu.Lock()
		l := labelled{j.name, parts[2]}
		if r.asked[x.server][l] == nil {
			r.asked[x.server][l] = map[int]bool{}
		}
		for ; turn < len(r.began); turn++ { // the next process may have started before the request
			if !r.asked[x.server][l][turn] {
				r.note("%s asks process %d as %s", x.name, turn, l)
			}
			r.asked[x.server][l][turn] = true
		}
		r.mu.Unlock()
		if err != nil || swallow {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	})
}

// relabel changes the instance of a server's jobs. It also changes the cursor, unless the cursor is kept.
func (r *healRoundRun) relabel(x *healScraper, keep bool) {
	instance := fmt.Sprint("pod-", x.n)
	if x.n++; x.n > 2 && r.IntN(3) == 0 { // reuse an earlier instance
		instance = x.jobs[0].instances[r.IntN(len(x.jobs[0].instances))]
	}
	var b strings.Builder
	b.WriteString("scrape_configs:\n")
	for _, j := range x.jobs {
		if j.instance = instance; !slices.Contains(j.instances, instance) {
			j.instances = append(j.instances, instance)
		}
		if !keep {
			j.cursor++
		}
		fmt.Fprintf(&b, "- job_name: %s\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  honor_timestamps: true\n",
			j.name)
		// The path is a label of the target, as the instance is. After a reload Prometheus scrapes the old targets with
		// the new metrics_path for some seconds. The request path would therefore not identify the labels of the
		// samples.
		fmt.Fprintf(&b,
			"  params: {cursor: ['%s-%s-%d']}\n  static_configs: [{targets: ['%s'], labels: {instance: %s, "+
				"__metrics_path__: /%s/%s/metrics/seconds}}]\n",
			x.name, j.name, j.cursor, x.proxy, instance, j.name, instance)
		if x.isVictoria {
			b.WriteString("  no_stale_markers: true\n")
		}
	}
	r.mu.Lock()
	r.note("%s is to scrape as %s, with the same cursor %t", x.name, instance, keep)
	r.mu.Unlock()
	text := strings.Replace(documentedWindow(r.T, map[bool]program{true: victoria, false: prometheus3}[x.isVictoria]),
		"scrape_configs: []\n", b.String(), 1)
	x.writeConfig(r.T, text)
	_ = x.process.Process.Signal(syscall.SIGHUP)
}

// run runs the round and then checks its result.
func (r *healRoundRun) run() {
	r.began = append(r.began, r.child.second)
	r.child.start(r.T)
	alive := true
	r.Cleanup(func() {
		if alive {
			r.child.kill()
		}
	})
	for _, x := range r.scraping {
		r.relabel(x, true)
	}
	begin := r.child.second
	next := time.Now()
	live := func(d time.Duration) { // in fast motion
		for until := next.Add(d); next.Before(until); next = next.Add(50 * time.Millisecond) {
			time.Sleep(time.Until(next))
			r.child.live(r.T, healSpeed/20)
			r.present.Store(r.child.second)
		}
	}
	calm := r.IntN(3)
	var gaps *healJob // periodically loses a third of its responses
	if x := r.scraping[r.IntN(len(r.scraping))]; len(x.jobs) > 1 && r.IntN(2) == 0 {
		gaps = x.jobs[1]
	}
	for until := time.Now().Add(healRound); time.Now().Before(until); {
		live(time.Duration(200+r.IntN(600)+calm*r.IntN(1500)) * time.Millisecond)
		if gaps != nil && time.Since(gaps.swallow) > 2*time.Second {
			gaps.mu.Lock()
			gaps.swallow = time.Now().Add(time.Second)
			gaps.mu.Unlock()
		}
		x := r.scraping[r.IntN(len(r.scraping))]
		j := x.jobs[r.IntN(len(x.jobs))]
		switch n := r.IntN(20); {
		case n < 3:
			j.mu.Lock()
			j.swallow = time.Now().Add(time.Duration(200+r.IntN(2000)) * time.Millisecond)
			j.mu.Unlock()
		case n < 5:
			j.mu.Lock()
			j.away = time.Now().Add(time.Duration(500+r.IntN(6000)) * time.Millisecond)
			j.mu.Unlock()
		case n < 8:
			r.relabel(x, r.IntN(2) == 0)
		case n < 11:
			if r.IntN(2) == 0 {
				r.child.stop(r.T, true)
			} else {
				r.child.killWithin(r.T, time.Duration(r.IntN(8))*time.Millisecond)
			}
			r.child.second += r.Int64N(6)
			r.spoilRuns()
			r.child.keeps = []time.Duration{70 * time.Second, 90 * time.Second, healHistory}[r.IntN(3)]
			for _, x := range r.scraping {
				if r.IntN(2) == 0 {
					r.relabel(x, r.IntN(2) == 0)
				}
			}
			r.mu.Lock()
			r.began = append(r.began, r.child.second)
			r.child.start(r.T)
			r.mu.Unlock()
		case n == 11: // suspended, while a server may wait for a response
			_ = r.child.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(100+r.IntN(2400)) * time.Millisecond)
			_ = r.child.process.Process.Signal(syscall.SIGCONT)
		case n == 12 && !x.isVictoria:
			x.end(syscall.SIGKILL)
			x.start(r.whole)
		default:
			to := r.child.second - healSettled
			for _, j := range x.jobs { // on a busy machine a server may store a response with a delay
				j.mu.Lock()
				to = min(to, j.asked-int64(healHistory/time.Second)-1)
				j.mu.Unlock()
			}
			if from := begin + r.Int64N(max(to-begin, 1)); to > from {
				r.heal(x, labelled{j.name, j.instances[r.IntN(len(j.instances))]}, from,
					from+r.Int64N(to-from), r.IntN(6))
			}
		}
		next = time.Now()
	}
	for _, x := range r.scraping {
		for _, j := range x.jobs {
			j.mu.Lock()
			j.away, j.swallow = time.Time{}, time.Time{}
			j.mu.Unlock()
		}
	}
	live(3 * time.Second)
	r.child.stop(r.T, true)
	alive = false
	r.settle()
	r.judge(begin, r.child.second-1)
}

// spoilRuns damages the file of runs in ways that can happen between two processes. The file is lost, it is replaced by
// an older copy, as after rsync, or it cannot be written while the next process starts, as on a full disk. After a full
// disk, the next call of spoilRuns repairs the disk.
func (r *healRoundRun) spoilRuns() {
	path := filepath.Join(r.child.dir, "log", "e2e-runs.json")
	full := path + ".new" // the next content is written here
	_ = os.Remove(full)
	var err error
	switch r.IntN(8) {
	case 0:
		err = os.Remove(path)
	case 1:
		if r.older != nil {
			err = os.WriteFile(path, r.older, 0o600)
		}
	case 2:
		err = os.Mkdir(full, 0o700)
	case 3, 4:
		r.older, _ = os.ReadFile(path)
	}
	if err != nil && !os.IsNotExist(err) {
		r.Error(err)
	}
}

// settle waits until no server receives more data. On a busy machine the last scrape may be slow. A heal that runs at
// the same time does not see the samples that this scrape stores under other labels; for this reason a command does not
// check the last minutes.
func (r *healRoundRun) settle() {
	r.Helper()
	all := func() (n int) {
		for _, x := range r.scraping {
			for _, j := range x.jobs {
				for _, resources := range r.held(x.server, j.name) {
					for _, seconds := range resources {
						n += len(seconds)
					}
				}
			}
		}
		return n
	}
	for n, same := all(), 0; same < 3; same++ { // VictoriaMetrics may show the last samples seconds later
		time.Sleep(2 * time.Second)
		before := n
		if n = all(); n != before {
			same = -1
		}
	}
}

// heal heals the samples of a server under some labels, in one of several ways, and records the written samples.
func (r *healRoundRun) heal(x *healScraper, l labelled, from, to int64, way int) (after verify.Report) {
	r.Helper()
	before := r.held(x.server, l.job)
	r.mu.Lock()
	r.note("%s: %s is healed in way %d, %d to %d, at %d", x.name, l, way, from, to, r.child.second)
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	switch way {
	case 0: // two commands at the same time
		other := make(chan struct{})
		go func() {
			defer close(other)
			_, _, _ = r.verify(ctx, x.server, l, from, to, "--heal")
		}()
		defer func() { <-other }()
	case 1: // the command is killed
		time.AfterFunc(time.Duration(r.IntN(150))*time.Millisecond, cancel)
	}
	report, written, err := r.verify(ctx, x.server, l, from, to, "--heal")
	if way == 1 {
		time.Sleep(300 * time.Millisecond)
	}
	r.heals++
	if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "exit status 1") {
		r.Fatalf("%s, %s: %v", x.name, l, err)
	}
	now := r.held(x.server, l.job)
	r.mu.Lock()
	r.note("%s: %s was healed: %+v, %v", x.name, l, written, err)
	r.mu.Unlock()
	for who, resources := range now {
		for resource, seconds := range resources {
			for second, n := range seconds {
				more := n - before[who][resource][second]
				if more == 0 || second > to || second < from {
					continue
				}
				r.healed += more
				if who != l {
					r.Errorf("%s: %s got second %d of %s while %s was healed", x.name, who, second, resource, l)
				}
				if more > 1 || n != more {
					r.Errorf("%s: %s was given second %d of %s, which it has %d times",
						x.name, who, second, resource, n)
				}
				for other, has := range now {
					if other == who || has[resource][second] == 0 {
						continue
					}
					if r.beside(before[who]["steady"], before[other]["steady"], second) ||
						// The second command read samples that the first one wrote.
						way == 0 && r.beside(resources["steady"], has["steady"], second) {
						x.beside[pairSecond{who, other, second}], x.beside[pairSecond{other, who, second}] = true, true
						continue
					}
					r.Errorf("%s: %s was given second %d of %s, which %s has, and was not scraped at the same time; "+
						"before the heal: %s", x.name, who, second, resource, other, summary(before))
				}
				if resource == "steady" {
					x.story[who] = fmt.Sprintf("way %d, %d to %d, process at %d, %d began; before that there were %s",
						way, from, to, r.child.second, len(r.began), summary(before))
				}
				if x.wrote[l] == nil {
					x.wrote[l] = map[string]map[int64]bool{}
				}
				if x.wrote[l][resource] == nil {
					x.wrote[l][resource] = map[int64]bool{}
				}
				x.wrote[l][resource][second] = true
			}
		}
	}
	return report
}

// verify runs the command.
func (r *healRoundRun) verify(ctx context.Context, s *server, l labelled, from, to int64,
	more ...string,
) (report verify.Report, written push.WriteResult, err error) {
	out, err := output(ctx, ".", append([]string{
		r.command, "verify", "--dir", filepath.Join(r.child.dir, "log"), "--from", strconv.FormatInt(from, 10),
		"--to", strconv.FormatInt(to, 10),
		"--url", "http://" + s.addr, "--label", "job=" + l.job, "--label", "instance=" + l.instance, "--format", "json",
	}, more...)...)
	var answer struct {
		verify.Report
		Healed push.WriteResult
	}
	if e := json.NewDecoder(bytes.NewReader(out)).Decode(&answer); e != nil && err == nil {
		err = e
	}
	right := answer.Clean() && len(answer.NotHealed) == 0
	if err == nil && !right ||
		err != nil && right && strings.Contains(err.Error(), "the database differs from the log") {
		r.Errorf("%s, %s: %v with %s", s.name, l, err, out)
	}
	return answer.Report, answer.Healed, err
}

// held returns the passes of a job in a server.
func (r *healRoundRun) held(s *server, job string) heldSeconds {
	r.Helper()
	s.show(r.T)
	all := heldSeconds{}
	for _, x := range s.query(r.T, fmt.Sprintf(`%s{job=%q}[1h]`, fields[0].metric, job)) {
		l := labelled{x.Metric["job"], x.Metric["instance"]}
		if all[l] == nil {
			all[l] = map[string]map[int64]int{}
		}
		seconds := map[int64]int{}
		for _, v := range x.Values {
			seconds[v.at/1000]++
		}
		all[l][x.Metric["resource"]] = seconds
	}
	return all
}

// judge heals all labels, and compares all samples with the truth.
func (r *healRoundRun) judge(begin, end int64) {
	truth := r.child.truth(r.T)
	logged := map[int64]bool{}
	searcher := metriclog.Searcher{Dir: filepath.Join(r.child.dir, "log")}
	rows, err := searcher.Search(metriclog.Query{From: time.Unix(begin, 0), To: time.Unix(end, 0)})
	if err != nil {
		r.Fatal(err)
	}
	if err := rows.Each(r.Context(),
		func(row *metriclog.Row) error { logged[row.Start.Unix()] = true; return nil }); err != nil {
		r.Fatal(err)
	}
	lacked, lacks := 0, 0
	for _, x := range r.scraping {
		named := map[string]map[int64]bool{}
		count := func() (n int) { // seconds of the log that a job lacks under all its labels
			for _, j := range x.jobs {
				has := map[int64]bool{}
				for _, resources := range r.held(x.server, j.name) {
					for second := range resources["steady"] {
						has[second] = true
					}
				}
				for second := range logged {
					if !has[second] {
						n++
						if named[j.name] != nil && !named[j.name][second] {
							r.Errorf("%s, %s: second %d of run %d is missing, and not reported", x.name,
								j.name, second, truth[second].Run)
						}
					}
				}
			}
			return n
		}
		lacked += count()
		// The samples that one heal writes may reveal to another heal that labels were scraped at the same time, so the
		// second heal may write more. It never writes an existing sample, which check verifies, and the number of heals
		// is limited.
		for pass, before := 0, -1; before != r.healed; pass++ {
			if before = r.healed; pass == 4 {
				r.Fatalf("%s: the fourth heal of the same seconds writes samples", x.name)
			}
			for _, j := range x.jobs {
				named[j.name] = map[int64]bool{}
				for _, instance := range j.instances {
					report := r.heal(x, labelled{j.name, instance}, begin, end, 2)
					name := func(x verify.Range) {
						for second := x.From.Unix(); second <= x.To.Unix(); second++ {
							named[j.name][second] = true
						}
					}
					for _, n := range report.Elsewhere { // the other job of a pair
						name(n.Range)
					}
					for _, n := range report.NotHealed {
						name(n.Range)
						r.refused[strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "",
							"7", "", "8", "", "9", "").Replace(n.Reason)] += int(n.Seconds)
					}
					for _, f := range report.Findings {
						for _, m := range f.Missing {
							name(m)
						}
					}
				}
			}
		}
		lacks += count()
		r.check(x, truth)
	}
	r.Logf("%d runs, %d of %d seconds in the log; %d heals wrote %d samples; %d seconds were lacking at the end, and "+
		"%d after the last heals: %v",
		len(r.began), len(logged), len(truth), r.heals, r.healed, lacked, lacks, r.refused)
	if r.healed == 0 {
		r.Error("nothing was healed")
	}
}

// check compares every sample of a server with the truth.
func (r *healRoundRun) check(x *healScraper, truth map[int64]counted) {
	wrong := 0
	defer func() {
		if wrong > 0 {
			r.Log(strings.Join(r.notes, "\n"))
		}
	}()
	complain := func(format string, args ...any) {
		if wrong++; wrong <= 20 {
			r.Errorf(x.name+": "+format, args...)
		}
	}
	for _, j := range x.jobs {
		for metric, of := range map[string]func(counted, string) float64{
			"windowstat_persecond_pass": func(c counted, resource string) float64 {
				return float64(c.Calls[resource].pass)
			},
			"windowstat_persecond_block": func(c counted, resource string) float64 {
				return float64(c.Calls[resource].block)
			},
			"windowstat_persecond_run": func(c counted, _ string) float64 { return float64(c.Run) },
		} {
			for _, s := range x.query(r.T, fmt.Sprintf(`%s{job=%q}[1h]`, metric, j.name)) {
				for _, v := range s.Values {
					c, ok := truth[v.at/1000]
					if want := of(c, s.Metric["resource"]); !ok || v.value != want {
						complain("%s of %s at %d is %v; it was %v, %t", metric, s.Metric, v.at, v.value, want, ok)
					}
				}
			}
		}
		held := r.held(x.server, j.name)
		for l, resources := range x.wrote {
			for resource, seconds := range resources {
				for second := range seconds {
					// The process was scraped with these labels, or a later process that had its last seconds in the
					// log.
					turn, _ := slices.BinarySearch(r.began, second+1)
					had := false
					for n := turn - 1; n < len(r.began) && (n < turn || r.began[n] <= second+healSettled); n++ {
						had = had || r.asked[x.server][l][n]
					}
					if !had {
						complain("%s was given second %d of process %d, which never had these labels: they asked %v "+
							"of those that began in %v, and have %s; the last heal: %s",
							l, second, turn-1, slices.Sorted(maps.Keys(r.asked[x.server][l])), r.began,
							stretches(held[l]["steady"]), x.story[l])
					}
					for other, has := range held {
						if l.job == j.name && other != l && has[resource][second] > 0 &&
							!x.beside[pairSecond{l, other, second}] &&
							!shared(held[l]["steady"], has["steady"], seconds, second) {
							complain("%s was given second %d of %s, which %s has", l, second, resource, other)
						}
					}
				}
			}
		}
	}
}

// summary describes the seconds of some labels.
func summary(all heldSeconds) string {
	var s strings.Builder
	for l, resources := range all {
		fmt.Fprintf(&s, "%s: %s; ", l, stretches(resources["steady"]))
	}
	return s.String()
}

// stretches returns the seconds as ranges.
func stretches(seconds map[int64]int) string {
	var s strings.Builder
	var last int64
	for _, second := range slices.Sorted(maps.Keys(seconds)) {
		if second != last+1 {
			if last != 0 {
				fmt.Fprintf(&s, "%d ", last)
			}
			fmt.Fprintf(&s, "%d-", second)
		}
		last = second
	}
	return fmt.Sprint(s.String(), last)
}

// beside reports whether a server scraped a process under both labels at the same time, as far as a heal of the given
// second can detect. Either the labels are replicas, or they began the process together and share some seconds within a
// minute before and within a minute after the second.
func (r *healRoundRun) beside(own, other map[int64]int, second int64) bool {
	turn, _ := slices.BinarySearch(r.began, second+1)
	first := func(all map[int64]int) int64 {
		for _, at := range slices.Sorted(maps.Keys(all)) {
			if at >= r.began[turn-1] {
				return at
			}
		}
		return 0
	}
	both := maps.Clone(own)
	maps.Copy(both, other)
	together := 0
	for _, at := range slices.Sorted(maps.Keys(both)) {
		if together++; own[at] == 0 || other[at] == 0 || slices.Contains(r.began, at) {
			together = 0
		}
		if together > int(healHistory/time.Second)+60 {
			return true
		}
	}
	between := first(own) - first(other)
	return max(between, -between) <= 2 && shared(own, other, nil, second)
}

// shared reports whether the other labels have some of the seconds that these labels have, within a minute before and
// within a minute after a second. Seconds that a heal wrote do not count.
func shared(own, other map[int64]int, given map[int64]bool, second int64) bool {
	for _, step := range []int64{-1, 1} {
		found := false
		for at, n := second+step, 0; n < 60 && !found && at > second-int64(healBegins/time.Second) &&
			at < second+int64(healBegins/time.Second); at += step {
			if own[at] > 0 {
				n++
				found = !given[at] && other[at] > 0
			}
		}
		if !found {
			return false
		}
	}
	return true
}
