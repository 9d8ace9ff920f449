package replay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// site is a server with an access log, and the process that follows the log. It tracks the expected content of the
// metric log.
type site struct {
	t       *testing.T
	path    string
	paths   []string // its logs if it has several, opened for each line
	log     metriclog.Options
	options Options
	random  *rand.Rand
	end     bool // lines have the time of the end of the call

	file     *os.File
	stop     context.CancelFunc // stops the following process; nil without one
	stopped  chan error
	follower *Follower
	writer   *metriclog.Writer

	calls          int
	pass, complete map[int64]int64
}

func newSite(t *testing.T, dir string, end bool, format *accesslog.Format) *site {
	s := &site{
		t: t, path: filepath.Join(dir, "access.log"), end: end, random: rand.New(rand.NewPCG(7, 7)),
		log: metriclog.Options{
			Dir: filepath.Join(dir, "log"), App: "site", Location: time.UTC,
			Logger: slog.New(slog.DiscardHandler),
		},
		pass: map[int64]int64{}, complete: map[int64]int64{},
	}
	s.options = options(t, s.path)
	s.options.Format, s.options.Tolerance = format, 5*time.Second
	s.file = create(t, s.path)
	return s
}

// start starts a following process, as the command does.
func (s *site) start() {
	s.t.Helper()
	after, err := metriclog.Last(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.follower, err = NewFollower(s.options, after); err != nil {
		s.t.Fatal(err)
	}
	c, err := collector.New(collector.Options{Now: s.follower.Clock.Now, After: after})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.writer, err = metriclog.New(c, s.log); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop, s.stopped = cancel, make(chan error, 1)
	go func() {
		s.stopped <- s.follower.Run(ctx, c, func() {
			if err := s.writer.Flush(); err != nil {
				s.t.Error(err)
			}
		})
	}()
}

// kill ends the process. The process loses all data that it has not written.
func (s *site) kill() {
	s.t.Helper()
	s.stop()
	if err := <-s.stopped; err != nil {
		s.t.Fatal(err)
	}
	if err := s.writer.Close(); err != nil {
		s.t.Fatal(err)
	}
	r := s.follower.Report()
	if r.Late+r.Clipped+r.Future+r.Malformed+r.Evicted != 0 {
		s.t.Errorf("report: %+v", r)
	}
}

// serve handles requests for a while, and writes a line when each of them ends. It writes some lines in two parts.
func (s *site) serve(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(s.random.IntN(40)) * time.Millisecond)
		ended := time.Now().Truncate(time.Millisecond)
		duration := time.Duration(s.random.IntN(300)) * time.Millisecond
		if s.random.IntN(10) == 0 {
			duration *= 9
		}
		began := ended.Add(-duration)
		line := fmt.Sprintf("%d.%03d %s %d.%03d\n", ended.Unix(), ended.Nanosecond()/1e6, "200", duration/time.Second,
			duration%time.Second/time.Millisecond)
		if !s.end {
			line = fmt.Sprintf("%d 200 %d\n", began.UnixMicro(), duration.Microseconds())
		}
		if len(s.paths) > 0 {
			s.file = openLog(s.t, s.paths[s.random.IntN(len(s.paths))])
		}
		cut := s.random.IntN(len(line))
		appendTo(s.t, s.file, line[:cut])
		if s.random.IntN(20) == 0 {
			time.Sleep(300 * time.Millisecond)
		}
		appendTo(s.t, s.file, line[cut:])
		if len(s.paths) > 0 {
			_ = s.file.Close() // append only
		}
		s.calls++
		s.pass[began.Unix()]++
		s.complete[ended.Unix()]++
	}
}

// check compares the metric log with the expected one after all seconds were replayed.
func (s *site) check() {
	s.t.Helper()
	rows, err := metriclog.Searcher{Dir: s.log.Dir}.Search(metriclog.Query{})
	if err != nil {
		s.t.Fatal(err)
	}
	pass, complete := map[int64]int64{}, map[int64]int64{}
	for row := range rows.All() {
		if row.Resource == collector.InboundTotal {
			pass[row.Start.Unix()] += row.Pass
			complete[row.Start.Unix()] += row.Success
		}
	}
	if err := rows.Close(); err != nil {
		s.t.Fatal(err)
	}
	for what, x := range map[string][2]map[int64]int64{"passed": {pass, s.pass}, "completed": {complete, s.complete}} {
		got, want, sum := x[0], x[1], int64(0)
		for second, n := range got {
			if sum += n; n != want[second] {
				s.t.Errorf("%v: %d %s, want %d", time.Unix(second, 0).UTC(), n, what, want[second])
			}
		}
		if sum != int64(s.calls) {
			s.t.Errorf("%d of %d calls %s", sum, s.calls, what)
		}
	}
}

// Every call is counted once, in its own seconds, through rotations of the log and restarts of the following process.
func TestFollow(t *testing.T) {
	nginx, err := accesslog.Nginx("$msec $status $request_time")
	if err != nil {
		t.Fatal(err)
	}
	apache, err := accesslog.Apache("%{usec}t %>s %D")
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]bool{"ends": true, "beginnings": false} {
		format := apache
		if end {
			format = nginx
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, dir, end, format)
				appendTo(t, s.file, "123456789.000 200 0.000\n1 200 1\nrubbish\n") // before the first process starts
				s.start()
				s.serve(20 * time.Second)
				rename(t, s.path, s.path+".1")
				s.serve(3 * time.Second)
				s.file = create(t, s.path)
				s.serve(30 * time.Second)
				s.kill()
				s.serve(8 * time.Second)
				s.start()
				s.serve(400 * time.Millisecond)
				s.kill()
				s.start()
				s.kill() // before it has counted a line
				s.start()
				s.serve(15 * time.Second)
				s.kill()
				s.serve(15 * time.Minute) // no process follows
				s.start()
				s.serve(10 * time.Second)
				time.Sleep(s.options.Tolerance + 3*time.Second)
				s.kill()
				s.check()
				t.Logf("%d calls", s.calls)
			})
		})
	}
}

func TestFollowStdin(t *testing.T) {
	f, err := accesslog.Nginx("$msec $status $request_time")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newSite(t, dir, true, f)
		s.options.Files, s.options.Stdin = []string{"-"}, r
		go func() {
			tail := tailOf(t, s.path, time.Unix(1, 0))
			for {
				x, err := tail.look()
				if err == nil {
					_, err = w.Write(x.data)
				}
				if !x.upTo.IsZero() {
					select {
					case <-time.After(poll):
					case <-t.Context().Done():
					}
				}
				if err != nil || t.Context().Err() != nil { // the last cycle
					_ = tail.close()
					return
				}
			}
		}()
		appendTo(t, s.file,
			fmt.Sprintf("%d.000 200 0.000\n%d.000 200 0.000\n", time.Now().Unix()-3600, time.Now().Unix()+3600))
		s.start()
		s.serve(20 * time.Second)
		time.Sleep(2 * time.Second)
		if err := w.Close(); err != nil { // replays the calls that are held
			t.Fatal(err)
		}
		if err := <-s.stopped; err != nil {
			t.Fatal(err)
		}
		if r := s.follower.Report(); r.Late != 1 || r.Future != 1 || int(r.Lines) != s.calls+2 {
			t.Errorf("report: %d late, %d from the future, %d lines of %d calls", r.Late, r.Future, r.Lines, s.calls)
		}
		if err := s.writer.Flush(); err != nil {
			t.Fatal(err)
		}
		s.check()
	})
}

func TestFollowerNeedsAFormat(t *testing.T) {
	dir := t.TempDir()
	f, err := accesslog.Named("common")
	if err != nil {
		t.Fatal(err)
	}
	empty := write(t, filepath.Join(dir, "empty"), nil)
	packed := write(t, filepath.Join(dir, "packed"), pack(t, []byte(common(1, "GET /", 200))).Bytes())
	for _, c := range []struct {
		name, path, err string
		format          *accesslog.Format
	}{
		{"missing", filepath.Join(dir, "missing"), "no such file", nil},
		{"missing, with a format", filepath.Join(dir, "missing"), "", f},
		{"empty, with a format", empty, "", f},
		{"a directory", dir, "is a directory", f},
		{"packed", packed, "is packed", f},
	} {
		o := options(t, c.path)
		o.Format = c.format
		f, err := NewFollower(o, time.Time{})
		if err == nil {
			_ = f.Close()
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
