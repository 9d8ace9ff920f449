package collector

import (
	"context"
	"fmt"

	"github.com/windowstat/windowstat/leap"
)

// frame is the context of a call, by which the calls below find it.
type frame struct {
	context.Context
	leaf  *leaf
	stamp uint64 // twice the reading at which the call entered, and one more if it is part of a call that came in from outside
}

func (f *frame) entered() leap.Reading { return leap.Reading(f.stamp) >> 1 }

func (f *frame) inbound() bool { return f.stamp&1 != 0 }

// frameKey finds the frame of a Collector in a context.
type frameKey struct{ c *Collector }

func (f *frame) Value(k any) any {
	if x, ok := k.(frameKey); ok && x.c == f.leaf.resource.c {
		return f
	}
	return f.Context.Value(k)
}

// String describes the context where one is printed; printing it otherwise would read statistics that change.
func (f *frame) String() string {
	return fmt.Sprintf("%v.WithEntry(%q)", f.Context, f.leaf.resource.name)
}

// frameOf finds the frame above ctx, nil if there is none.
func (c *Collector) frameOf(ctx context.Context) *frame {
	if f, ok := ctx.(*frame); ok && f.leaf.resource.c == c {
		return f
	}
	f, _ := ctx.Value(frameKey{c}).(*frame)
	return f
}

// depth is how many frames are above f, and at most most.
func (f *frame) depth(most int) (n int) {
	c := f.leaf.resource.c
	for up := c.frameOf(f.Context); up != nil && n < most; up = c.frameOf(up.Context) {
		n++
	}
	return n
}
