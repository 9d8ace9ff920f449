package push

import (
	"crypto/sha256"
	"fmt"

	"github.com/windowstat/windowstat/exporter/internal/delivery"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// position is the position of a push. Seconds in doubt are resent with their series divided into the same parts as
// before, and thus in the same requests. A server that has received some of these requests refuses them, and accepts
// the others.
type position struct {
	delivery.Position
	// Parts is the number of parts into which the series of the seconds in doubt are divided.
	Parts int `json:",omitempty"`
}

// positionFile stores the position of a Pusher for the next process. It is a state file of the log, written before
// seconds are sent and after they are settled, so that the next process knows which seconds the server may have.
type positionFile struct {
	path, id string
	saved    position // content of the file; zero if unknown
}

// newPositionFile returns the file for a server. Pushers with the same URL, namespace and format receive numbered files
// in the order of their creation.
func newPositionFile(o *Options, stateFile func(name string) (path string, err error)) (*positionFile, error) {
	sum := sha256.Sum256([]byte(target(o.URL) + "\n" + o.Namespace))
	var err error
	for n := 1; n <= 16; n++ {
		id := fmt.Sprintf("push-%s-%x-%d", o.Format.name(), sum[:6], n)
		path := ""
		if path, err = stateFile(id + ".json"); err == nil {
			return &positionFile{path: path, id: id}, nil
		}
	}
	return nil, err
}

// resume continues at the position of the previous process. No earlier process holds the log any longer, so no other
// process pushes from it.
func (p *Pusher) resume() {
	x := p.file
	if !p.archived { // before the first second is logged
		if err := p.opts.Log.Runs().SetLabels(x.id, p.opts.Labels); err != nil {
			p.error("cannot save the labels of pushes; the next process cannot send the unsent seconds of this one",
				"err", err)
		}
	}
	saved, err := atomicfile.Load(x.path, func(at *position) error {
		if at == nil { // no file
			return nil
		}
		return at.check(p.line.First())
	})
	if err != nil {
		p.error("cannot use the position of pushes; the file is renamed, and seconds of earlier processes are not sent",
			"err", err)
	}
	if saved != nil {
		p.mu.Lock()
		p.at.Parts = saved.Parts
		p.at.Position, _ = saved.Restore(p.line, 0) // check has no error
		p.mu.Unlock()
		p.expire(0)
	}
	p.save(0, 0)
}

// check returns an error if the position is invalid. first is the first second of the process that read it.
func (at *position) check(first int64) error {
	if at.Parts < 0 || at.Parts > maxParts {
		return fmt.Errorf("invalid number of requests in doubt: %d", at.Parts)
	}
	return at.Position.Check(first)
}

// save stores that all seconds before Next are settled, and that the seconds before to are about to be sent in this
// number of parts. With to = 0 nothing is about to be sent. The cost is the write of a small file. Like the log, the
// file is not synced.
func (p *Pusher) save(to int64, parts int) {
	x := p.file
	if x == nil {
		return
	}
	p.mu.Lock()
	if to > p.at.UnackedTo {
		p.at.UnackedTo, p.at.Parts = to, parts
	}
	if !p.at.InDoubt() {
		p.at.UnackedTo, p.at.Parts = 0, 0
	}
	at := p.at
	p.mu.Unlock()
	if at == x.saved {
		return
	}
	x.saved = position{}
	if err := atomicfile.Swap(x.path, at); err != nil {
		p.error("cannot save the position of pushes; the next process may send seconds again", "err", err)
		return
	}
	x.saved = at
}
