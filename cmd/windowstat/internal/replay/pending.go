package replay

import (
	"container/heap"

	"github.com/windowstat/windowstat/collector"
)

// completion is the end of a call that has begun, in the future of the replay.
type completion struct {
	at int64 // Unix nanoseconds
	*collector.Entry
	name   int32
	status int16
	failed bool
}

// pending is a heap of the calls in flight, the next to end first.
type pending []completion

func (f pending) Len() int           { return len(f) }
func (f pending) Less(i, j int) bool { return f[i].at < f[j].at }
func (f pending) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *pending) Push(x any)        { *f = append(*f, x.(completion)) }
func (f *pending) Pop() any {
	old := *f
	last := old[len(old)-1]
	*f = old[:len(old)-1]
	return last
}

func (f *pending) add(l completion) { heap.Push(f, l) }

// next removes the call that ends first, if it ends before the given time.
func (f *pending) next(before int64) (completion, bool) {
	if len(*f) == 0 || (*f)[0].at >= before {
		return completion{}, false
	}
	return heap.Pop(f).(completion), true
}
