package push

import (
	"crypto/sha256"
	"fmt"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// position is how far the server has the seconds. What is in doubt is sent again divided as it was: a server that has some series refuses
// the requests that they are in, and no others.
type position struct {
	seconds.Position
	// Parts is how many requests there are for what is in doubt.
	Parts int `json:",omitempty"`
}

// positionFile is where the position of a Pusher is kept for the next process: a state file of the log, written before seconds are sent
// and after that, so that the next process knows which of them the server may have.
type positionFile struct {
	path, id string
	saved    position // what the file has; zero if that is not known
}

// newPositionFile returns the file for a server. Pushers with the same URL, namespace and format take theirs by the order in which they
// are made.
func newPositionFile(o *Options) (*positionFile, error) {
	sum := sha256.Sum256([]byte(target(o.URL) + "\n" + o.Namespace))
	var err error
	for n := 1; n <= 16; n++ {
		id := fmt.Sprintf("push-%s-%x-%d", o.Format.name(), sum[:6], n)
		path := ""
		if path, err = o.Log.StateFile(id + ".json"); err == nil {
			return &positionFile{path: path, id: id}, nil
		}
	}
	return nil, err
}

// resume goes on where the processes before stopped. None of them has the log any more, and so none of them pushes.
func (p *Pusher) resume() {
	x := p.file
	if err := p.opts.Log.Runs().SetLabels(x.id, p.opts.Labels); err != nil { // before anything is logged
		p.error("cannot save the labels of pushes; the next process cannot send what this one does not", "err", err)
	}
	first := p.line.First()
	var was *position
	err := atomicfile.Read(x.path, &was)
	if err == nil && was != nil {
		err = was.check(first)
	}
	if err != nil {
		aside, err := atomicfile.SetAside(x.path, err)
		p.error("cannot use the position of pushes; seconds of earlier processes are not sent, and the file is set aside", "file", aside, "err", err)
		was = nil
	}
	if was != nil {
		p.sent = max(was.Next, was.Doubt)
		p.mu.Lock()
		p.at = *was
		p.at.Next, p.at.Doubt = min(was.Next, first), min(was.Doubt, first)
		p.mu.Unlock()
		if was.Next >= first { // an earlier process has sent these names: it was killed just now, or the clock was set back
			p.pass(p.sent, true)
		}
	}
	p.save(0, 0)
}

// check returns what is wrong with a position that was read by a process whose first second is first.
func (at *position) check(first int64) error {
	if at.Parts < 0 || at.Parts > maxParts {
		return fmt.Errorf("what is in doubt is in %d requests", at.Parts)
	}
	return at.Check(first)
}

// save writes that all seconds before the next one are settled, and that what is before to is about to be sent in so many parts, nothing
// if to is 0. It costs a small file; like the log it is not synced.
func (p *Pusher) save(to int64, parts int) {
	x := p.file
	if x == nil {
		return
	}
	p.mu.Lock()
	if to > p.at.Doubt {
		p.at.Doubt, p.at.Parts = to, parts
	}
	if !p.at.InDoubt() {
		p.at.Doubt, p.at.Parts = 0, 0
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
