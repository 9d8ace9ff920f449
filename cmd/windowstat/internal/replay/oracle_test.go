package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/node"
)

// line is a line of a generated log: a call, stamped with its start or its end.
type line struct {
	stamp, duration int64 // nanoseconds
	resource        string
	status          int
}

// made is a generated replay: logs, and the meaning of their stamps.
type made struct {
	logs      [][]line
	end       bool // stamps are ends of calls
	tolerance int64
}

const base = 1_700_000_000 * nanos

// generate makes logs from arbitrary bytes. Times advance by some milliseconds, sometimes by hours. Some lines are
// within the tolerance, some late, some outliers; some calls take longer than the tolerance.
func generate(data []byte) made {
	next := func() (b byte) {
		if len(data) > 0 {
			b, data = data[0], data[1:]
		}
		return b
	}
	head := next()
	m := made{end: head&1 == 0, tolerance: int64(head >> 1 & 15), logs: make([][]line, 1+head>>5%3)}
	now := base
	for len(data) > 0 {
		step, how := next(), next()
		switch now += int64(step%64) * 7 * int64(time.Millisecond); {
		case step >= 252:
			now += int64(step-251) * int64(time.Hour)
		case step >= 240:
			now += int64(step-239) * int64(time.Second)
		}
		now -= now % int64(time.Millisecond)
		l := line{stamp: now, status: []int{200, 200, 200, 404, 500, 503, 429, 302}[how&7]}
		l.duration = int64(next()) * int64(time.Millisecond)
		if how&0x30 == 0 {
			l.duration *= 200 // up to 51 s
		}
		late := next()
		switch {
		case late >= 254:
			l.stamp += int64(time.Hour) * 24 * int64(late) // an outlier
		case late >= 192:
			l.stamp -= int64(late-191) * int64(time.Second)
		case late >= 128:
			l.stamp -= int64(late-128) * 37 * int64(time.Millisecond)
		}
		i := int(how>>6) % len(m.logs)
		l.resource = fmt.Sprintf("GET /%c/%c", 'a'+how>>3&1, 'x'+i)
		m.logs[i] = append(m.logs[i], l)
	}
	return m
}

// format is the format of the lines.
func (m *made) format(t testing.TB) *accesslog.Format {
	t.Helper()
	f, err := accesslog.Apache(`%{usec}t "%r" %>s %D`)
	if m.end {
		f, err = accesslog.Nginx(`$msec "$request" $status $request_time`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes the logs to files, the last log packed, and returns the files in reverse order.
func (m *made) write(t testing.TB) (files []string) {
	t.Helper()
	dir := t.TempDir()
	for i, log := range m.logs {
		var b bytes.Buffer
		for _, l := range log {
			if m.end {
				fmt.Fprintf(&b, "%d.%03d \"%s HTTP/1.1\" %d %d.%03d\n", l.stamp/nanos, l.stamp%nanos/1e6, l.resource,
					l.status, l.duration/nanos, l.duration%nanos/1e6)
			} else {
				fmt.Fprintf(&b, "%d \"%s HTTP/1.1\" %d %d\n", l.stamp/1e3, l.resource, l.status, l.duration/1e3)
			}
		}
		if i > 0 && i == len(m.logs)-1 {
			b = *pack(t, b.Bytes())
		}
		files = append(files, write(t, filepath.Join(dir, fmt.Sprint(i)), b.Bytes()))
	}
	slices.Reverse(files)
	return files
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func pack(t testing.TB, data []byte) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return &b
}

// key is a resource in a second. The empty resource is the total.
type key struct {
	second   int64
	resource string
}

// played is a call as the oracle replays it, from its pass to its end.
type played struct {
	pass, end, duration int64
	resource            string
	status              int
}

// oracle is a naive replay. It determines which lines count and when their calls pass and end. Then it scans all calls
// for each second and resource.
func (m *made) oracle() (seconds map[key]node.MetricNode, r Report) {
	var calls []played
	tolerance := m.tolerance * nanos
	for _, log := range m.logs {
		if len(log) == 0 {
			continue
		}
		latest := slices.MinFunc(log, func(a, b line) int { return int(a.stamp - b.stamp) }).stamp
		for i, l := range log {
			r.Lines++
			if l.stamp > latest+tolerance {
				earlier, of := 0, log[i+1:min(i+11, len(log))]
				for _, x := range of {
					if x.stamp+tolerance < l.stamp {
						earlier++
					}
				}
				if earlier*2 > len(of) {
					r.Outliers++
					continue
				}
			}
			latest = max(latest, l.stamp)
			open := (latest/nanos - m.tolerance) * nanos
			if l.stamp < open {
				r.Late++
				continue
			}
			r.Statuses[l.status]++
			c := played{
				pass: l.stamp, end: l.stamp + l.duration, duration: l.duration,
				resource: l.resource, status: l.status,
			}
			if m.end {
				c.pass, c.end = l.stamp-l.duration, l.stamp
			}
			if c.pass < open {
				c.pass = open
				r.Clipped++
			}
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b played) int { return int(a.pass - b.pass) })
	seconds = map[key]node.MetricNode{}
	for i := range calls {
		c := &calls[i]
		for _, resource := range []string{c.resource, ""} {
			at := func(t int64, f func(*node.MetricNode)) {
				k := key{t / nanos, resource}
				n := seconds[k]
				f(&n)
				seconds[k] = n
			}
			if c.status == 429 {
				at(c.pass, func(n *node.MetricNode) { n.Block++ })
				continue
			}
			at(c.pass, func(n *node.MetricNode) {
				n.Pass++
				n.InFlightMax = max(n.InFlightMax, 1+inFlight(calls[:i], resource, c.pass+1))
			})
			at(c.end, func(n *node.MetricNode) {
				n.Complete++
				n.RTSum += time.Duration(c.duration)
				if c.status >= 500 {
					n.Exception++
				}
			})
			for t := c.pass; t < c.end; {
				next := min((t/nanos+1)*nanos, c.end)
				at(t, func(n *node.MetricNode) { n.InFlightTime += time.Duration(next - t) })
				t = next
			}
			for t := (c.pass/nanos + 1) * nanos; t <= c.end; t += nanos {
				at(t-1, func(n *node.MetricNode) { n.InFlight++ })
				at(t, func(n *node.MetricNode) { n.InFlightMax = max(n.InFlightMax, inFlight(calls, resource, t)) })
			}
		}
	}
	return seconds, r
}

// inFlight returns the number of calls that began before a time and end at or after it.
func inFlight(calls []played, resource string, t int64) (n int64) {
	for _, c := range calls {
		if c.pass < t && c.end >= t && c.status != 429 && (resource == "" || resource == c.resource) {
			n++
		}
	}
	return n
}

func statuses(t testing.TB, list string) Statuses {
	t.Helper()
	s, err := ParseStatuses(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(t testing.TB, files ...string) Options {
	t.Helper()
	return Options{
		Files: files, Zone: time.UTC, Tolerance: 5 * time.Minute, PathDepth: 4, MaxResources: 1000,
		Exceptions: statuses(t, "5xx"), Blocks: statuses(t, "429"),
	}
}

// check replays the logs, and compares every second and resource with the oracle.
func (m *made) check(t *testing.T) {
	t.Helper()
	want, wantReport := m.oracle()
	o := options(t, m.write(t)...)
	o.Format, o.Tolerance = m.format(t), time.Duration(m.tolerance)*time.Second
	last := time.Time{}
	report, err := Run(t.Context(), o, func(s *Second) error {
		if !s.Start.After(last) {
			return fmt.Errorf("%v comes after %v", s.Start, last)
		}
		last = s.Start
		all := append(slices.Clone(s.Rows), Row{"", s.Total})
		for _, row := range all {
			k := key{s.Start.Unix(), row.Resource}
			got := row.MetricNode
			expect, ok := want[k]
			if delete(want, k); !ok {
				return fmt.Errorf("%v %q: a row of what was not: %+v", s.Start, row.Resource, got)
			}
			if k.resource == "" && len(m.logs) > 1 { // the order of equal times of several logs is undefined
				expect.InFlightMax = got.InFlightMax
			}
			// Durations beyond the end of the second are rounded, by less than 10 µs in all.
			if d := got.InFlightTime - expect.InFlightTime; d > -10*time.Millisecond && d < 10*time.Millisecond {
				expect.InFlightTime = got.InFlightTime
			}
			got.Start, got.PassPeak, got.RTMin, got.RTMax = time.Time{}, 0, 0, 0
			if got != expect {
				return fmt.Errorf("%v %q:\n got %+v\nwant %+v", s.Start, row.Resource, got, expect)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for k, n := range want {
		t.Errorf("nothing of %v %q: %+v", time.Unix(k.second, 0).UTC(), k.resource, n)
	}
	if report.Lines != wantReport.Lines || report.Late != wantReport.Late || report.Outliers != wantReport.Outliers ||
		report.Clipped != wantReport.Clipped || report.Statuses != wantReport.Statuses ||
		report.Malformed+report.Future+report.Evicted != 0 {
		t.Errorf("report: got %+v, want %+v", *report, wantReport)
	}
}

func TestOracle(t *testing.T) {
	var sum Report
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		lines := 200 // the cost of the oracle is quadratic
		if seed%20 == 0 {
			lines = 700
		}
		data := make([]byte, 1+4*r.IntN(lines))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		m := generate(data)
		m.check(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		_, report := m.oracle()
		sum.Lines, sum.Late, sum.Clipped, sum.Outliers = sum.Lines+report.Lines, sum.Late+report.Late,
			sum.Clipped+report.Clipped, sum.Outliers+report.Outliers
	}
	t.Logf("%d lines, %d late, %d clipped, %d outliers", sum.Lines, sum.Late, sum.Clipped, sum.Outliers)
	if sum.Late == 0 || sum.Clipped == 0 || sum.Outliers == 0 {
		t.Error("a kind of line was not generated")
	}
}

func FuzzOracle(f *testing.F) {
	f.Add([]byte("\x08some bytes that make some lines of a log, and some more"))
	f.Add([]byte("\x6bthree logs whose stamps are the beginnings of their calls\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := generate(data[:min(len(data), 2000)])
		m.check(t)
	})
}
