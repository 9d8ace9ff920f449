package push

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/internal/bare"
	"github.com/windowstat/windowstat/internal/statefile"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// Log is the metric log of the process; metriclog.Writer implements it.
type Log interface {
	seconds.Log
	// StateFile returns the path for a file of this name that belongs to the log. It returns each name once.
	StateFile(name string) (path string, err error)
	// Written returns the Unix time before which all seconds are in the log that it will ever have.
	Written() int64
}

// position is what a Pusher leaves to the next process, as it is in the file. It is written before seconds are sent and after
// that, so that the next process knows which of them the server may have.
type position struct {
	URL, Way, Namespace string // whose it is
	Next                int64  // Unix time before which everything is settled
	To                  int64  `json:",omitempty"` // if not 0, the seconds from Next on and before To were about to be sent together
	Runs                []run  // whose the seconds from Next on are, ascending
}

// run are the seconds from a Unix time on: their labels stay those of their process.
type run struct {
	From   int64
	Labels map[string]string
}

// Bounds of a position.
const (
	maxRuns      = 100     // of processes with different labels that have sent nothing
	maxPosition  = 1 << 20 // bytes
	maxTogether  = 24 * 60 * 60
	maxAhead     = 5 * 60 // seconds that it may be ahead of this process
	lockAttempts = time.Second
)

// place is where the position is kept: nowhere without a log.
type place struct {
	path string
	lock *os.File // nil until it is ours
	position
	saved bool  // the file has it
	doubt int64 // Unix time before which an earlier process may have sent seconds
	begin int64 // index of the first second of this process to send
	row   int64 // Unix time of a row that the log had when reading it stopped
}

// newPlace returns the place of a server's position in the log's directory. Pushers with the same URL take their places by the
// order in which they are made.
func newPlace(o *Options, way string) (place, error) {
	x := place{position: position{URL: target(o.URL), Way: way, Namespace: o.Namespace}}
	sum := sha256.Sum256([]byte(x.URL + "\n" + x.Namespace))
	var err error
	for n := 1; n <= 16; n++ {
		if x.path, err = o.Log.StateFile(fmt.Sprintf("push-%s-%x-%d.json", way, sum[:6], n)); err == nil {
			return x, nil
		}
	}
	return x, err
}

// resume takes the place, and goes on where the processes before stopped. It waits while another process has it, which is about
// to end, and reports false if ctx ends before.
func (p *Pusher) resume(ctx context.Context) bool {
	x := &p.place
	if x.path == "" {
		return true
	}
	for told := false; x.lock == nil; {
		lock, _, err := filelock.Lock(x.path + ".lck")
		x.lock = lock
		if err == nil {
			break
		}
		if !errors.Is(err, filelock.ErrHeld) {
			p.opts.Logger.Error("the position of pushes cannot be used; what is not sent when the process ends is lost", "url", bare.URL(p.opts.URL), "err", err)
			p.opts.Log = nil
			return true
		}
		if !told {
			p.opts.Logger.Warn("another process has the position of pushes; nothing is sent until it ends", "url", bare.URL(p.opts.URL), "err", err)
			told = true
		}
		if !sleep(ctx, lockAttempts) {
			return false
		}
	}
	first := p.resources.First() // and its Unix time
	was, err := x.read(first + maxAhead)
	if err != nil {
		aside := x.path + ".unreadable"
		p.opts.Logger.Error("cannot use the position of pushes; seconds of earlier processes are not sent, and the file is set aside",
			"file", aside, "err", errors.Join(err, os.Rename(x.path, aside)))
	}
	if was.Next == 0 {
		x.Next = p.unix(p.next)
		x.Runs = []run{{x.Next, p.opts.Labels}}
		p.write()
		return true
	}
	x.position, x.doubt, x.begin = was, min(was.To, first), first
	if end := max(was.Next, was.To); end > first {
		x.begin = p.index(end) // the names of the seconds before were sent
	}
	lost := x.add(run{first, p.opts.Labels})
	p.write() // the labels, before the log has a second of this process
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.lost += lost
	if p.next = min(x.Next, first); p.next == first {
		p.skip(x.begin)
	}
	return true
}

// skip leaves out the seconds of this process before one. Holds mu.
func (p *Pusher) skip(to int64) {
	p.total.lost += max(to-max(p.next, p.resources.First()), 0)
	p.next = max(p.next, to)
}

// add adds the run of this process. It returns how many seconds are given up, because there are too many runs.
func (x *position) add(own run) (lost int64) {
	for len(x.Runs) > 0 && x.Runs[len(x.Runs)-1].From >= own.From {
		x.Runs = x.Runs[:len(x.Runs)-1]
	}
	if len(x.Runs) == 0 || !maps.Equal(x.Runs[len(x.Runs)-1].Labels, own.Labels) {
		x.Runs = append(x.Runs, own)
	}
	if len(x.Runs) > maxRuns {
		x.Runs = x.Runs[len(x.Runs)-maxRuns:]
		lost = max(x.Runs[0].From-x.Next, 0)
		if x.Next += lost; x.To <= x.Next {
			x.To = 0
		}
	}
	return lost
}

// labels are those of a second, a Unix time, and of the ones after it and before until.
func (x *position) labels(unix, to int64) (labels map[string]string, until int64) {
	labels, until = x.Runs[0].Labels, to
	for _, r := range x.Runs {
		if r.From > unix {
			until = min(until, r.From)
			break
		}
		labels = r.Labels
	}
	return labels, until
}

// save writes that everything before next is settled, and that what is before to is about to be sent; a to that is not after
// next says that nothing is. Both are indexes. It costs a small file; like the log it is not synced.
func (p *Pusher) save(to int64) {
	x := &p.place
	if x.lock == nil {
		return
	}
	next, until := p.unix(p.next), int64(0)
	if to > p.next {
		until = p.unix(to)
	}
	if next == x.Next && until == x.To && x.saved {
		return
	}
	for len(x.Runs) > 1 && x.Runs[1].From <= next {
		x.Runs = x.Runs[1:]
	}
	x.Next, x.To = next, until
	p.write()
}

// write replaces the file.
func (p *Pusher) write() {
	err := statefile.Swap(p.place.path, p.place.position)
	if p.place.saved = err == nil; err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log("cannot save the position of pushes; the next process may send seconds again", "err", err)
	}
}

// unix returns the Unix time of a second, or of the first one after it that has a name.
func (p *Pusher) unix(index int64) int64 {
	if index < p.resources.First() {
		return index // the first second of a timeline has its Unix time as its index
	}
	for open := p.open(); ; index++ {
		if name, ok := p.stats.Timeline().Name(index); ok || index >= open {
			return max(name.Unix(), p.place.Next)
		}
	}
}

// index is the inverse of unix.
func (p *Pusher) index(unix int64) int64 {
	if unix < p.resources.First() {
		return unix
	}
	return p.stats.Timeline().IndexFrom(time.Unix(unix, 0))
}

// read reads the position of an earlier process; there is none without a file.
func (x *place) read(latest int64) (was position, err error) {
	f, err := os.Open(x.path)
	if errors.Is(err, os.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPosition))
	if err = errors.Join(err, f.Close()); err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err == nil {
		err = was.check(&x.position, latest)
	}
	if err != nil {
		return position{}, fmt.Errorf("%s: %w", x.path, err)
	}
	return was, nil
}

// check returns what is wrong with a position that was read.
func (x *position) check(of *position, latest int64) error {
	switch {
	case x.URL != of.URL || x.Way != of.Way || x.Namespace != of.Namespace:
		return fmt.Errorf("it is the position of another push, to %q", x.URL)
	case x.Next <= 0 || x.To != 0 && (x.To <= x.Next || x.To-x.Next > maxTogether) || len(x.Runs) == 0 || len(x.Runs) > maxRuns:
		return errors.New("it is no position")
	case max(x.Next, x.To) > latest:
		return fmt.Errorf("it is of the future: %v", time.Unix(max(x.Next, x.To), 0).UTC())
	}
	for i, r := range x.Runs {
		if i > 0 && r.From <= x.Runs[i-1].From {
			return errors.New("its processes are not in order")
		}
		if err := CheckLabels(r.Labels); err != nil {
			return err
		}
	}
	return nil
}
