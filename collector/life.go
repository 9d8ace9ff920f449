package collector

import (
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// life is what a [View] reads, from when its name is first used until it is retired, and what finds the life after it.
// Only dead changes.
type life struct {
	c        *Collector
	view     *node.View
	dead     atomic.Bool // retired; changes under the collector's mu
	kind     lifeKind
	resource *Resource // the resource itself, or that of an origin or a context; nil for other kinds
	key      string    // the name by which the next life is found
}

type lifeKind uint8

const (
	ofAll      lifeKind = iota // the root and inbound calls, which live for ever
	ofResource                 // by its name
	ofOrigin                   // of a resource, by the origin
	ofContext                  // of a resource, by the entrance
	ofEntrance                 // by its name
)

// init sets what does not change.
func (l *life) init(c *Collector, v *node.View, kind lifeKind, r *Resource, key string) {
	l.c, l.view, l.kind, l.resource, l.key = c, v, kind, r, key
}

// current is the life that has the name now; l itself if there is none. It is nil for nil.
func (l *life) current() *life {
	if l == nil || !l.dead.Load() {
		return l
	}
	if next := l.next(); next != nil {
		return next
	}
	return l
}

// next finds the life that has the name now, nil if there is none.
func (l *life) next() *life {
	switch l.kind {
	case ofResource:
		return &l.resource.now().life
	case ofOrigin:
		if o := l.resource.now().origin(l.key); o != nil {
			return o
		}
		if l == &l.resource.sole { // whose view is that of all origins now
			return &life{c: l.c, view: node.NewView(l.c.shape, l.c.line.Now())}
		}
	case ofContext:
		if t := l.resource.now().treeNode(l.key); t != nil {
			return &t.life
		}
	case ofEntrance:
		if t := l.c.entrance(l.key); t != nil {
			return &t.life
		}
	}
	return nil
}
