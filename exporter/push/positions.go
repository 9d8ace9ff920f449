package push

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// positions is where the positions of a Pusher's shards are kept for the next process: a state file of the log, written before
// seconds are sent and after that, so that the next process knows which of them the server may have.
type positions struct {
	path, id string
	lock     *os.File // nil until the file is ours

	mu    sync.Mutex     // guards what follows, and the file
	saved []slotPosition // what the file has; nil if that is not known
}

// slotPosition is the position of some slots, in the file.
type slotPosition struct {
	Slots seconds.Slots
	seconds.Position
}

// lockAttempts is how long to wait between two attempts to lock the file.
const lockAttempts = time.Second

// newPositions returns the place of a server's positions. Pushers with the same URL, namespace and format take their places by the
// order in which they are made.
func newPositions(o *Options) (*positions, error) {
	sum := sha256.Sum256([]byte(target(o.URL) + "\n" + o.Namespace))
	var err error
	for n := 1; n <= 16; n++ {
		id := fmt.Sprintf("push-%s-%x-%d", o.Format.name(), sum[:6], n)
		path := ""
		if path, err = o.Log.StateFile(id + ".json"); err == nil {
			return &positions{path: path, id: id}, nil
		}
	}
	return nil, err
}

// resume takes the place, and goes on where the processes before stopped. It waits while another process has it, which is about
// to end, and reports false if ctx ends before. Without a place the log is no queue.
func (p *Pusher) resume(ctx context.Context) bool {
	x := p.positions
	if err := p.opts.Log.Runs().SetLabels(x.id, p.opts.Labels); err != nil { // before anything is logged
		p.error("cannot save the labels of pushes; the next process cannot send what this one does not", "err", err)
	}
	for x.lock == nil {
		lock, err := filelock.Lock(x.path + ".lck")
		x.lock = lock
		if err == nil {
			break
		}
		if !errors.Is(err, filelock.ErrHeld) {
			p.error("the positions of pushes cannot be used; what is not sent when the process ends is lost", "err", err)
			p.positions = nil
			return true
		}
		p.log.Log(slog.LevelWarn, "another process has the positions of pushes; nothing is sent until it ends", "err", err)
		if !background.Sleep(ctx, lockAttempts) {
			return false
		}
	}
	first := p.line.First()
	var list []slotPosition
	err := atomicfile.Read(x.path, &list)
	if err == nil {
		err = checkPositions(list, first)
	}
	if err != nil {
		aside := x.path + ".unreadable"
		p.error("cannot use the positions of pushes; seconds of earlier processes are not sent, and the file is set aside",
			"file", aside, "err", errors.Join(err, os.Rename(x.path, aside)))
		list = nil
	}
	p.mu.Lock()
	if len(list) > 0 {
		p.shards = nil
	}
	for _, at := range list {
		s := &shard{slots: at.Slots, Position: at.Position, sent: max(at.Next, at.Doubt)}
		s.Doubt = min(s.Doubt, first)
		if s.Next >= first { // an earlier process has sent these names: it was killed just now, or the clock was set back
			p.lose(first, s.sent)
			s.Settle(s.sent)
		}
		p.shards = append(p.shards, s)
	}
	p.mu.Unlock()
	p.write()
	return true
}

// checkPositions returns what is wrong with positions that were read: together they have every slot once.
func checkPositions(list []slotPosition, first int64) error {
	all := seconds.Slots(0)
	for _, at := range list {
		if err := at.Check(first); err != nil {
			return err
		}
		if at.Slots&all != 0 {
			return errors.New("positions overlap")
		}
		all |= at.Slots
	}
	if all != seconds.AllSlots && len(list) > 0 {
		return errors.New("positions of some series are missing")
	}
	return nil
}

// unlock lets the next process have the place.
func (x *positions) unlock() { _ = x.lock.Close() }

// save writes that all seconds of a shard before its next one are settled, and that what is before to is about to be sent, 0 if
// nothing is. It costs a small file; like the log it is not synced.
func (p *Pusher) save(s *shard, to int64) {
	x := p.positions
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	p.mu.Lock()
	if s.Doubt = max(s.Doubt, to); !s.InDoubt() {
		s.Doubt = 0
	}
	p.mu.Unlock()
	p.write()
}

// write replaces the file, unless it has the positions. Holds the positions' mu, or nothing is sent yet.
func (p *Pusher) write() {
	var list []slotPosition
	p.mu.Lock()
	for _, s := range p.shards {
		list = append(list, slotPosition{s.slots, s.Position})
	}
	p.mu.Unlock()
	x := p.positions
	if slices.Equal(list, x.saved) {
		return
	}
	x.saved = nil
	if err := atomicfile.Swap(x.path, list); err != nil {
		p.error("cannot save the positions of pushes; the next process may send seconds again", "err", err)
		return
	}
	x.saved = list
}
