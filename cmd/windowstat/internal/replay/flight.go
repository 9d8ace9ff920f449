package replay

import (
	"container/heap"

	"github.com/windowstat/windowstat/collector"
)

// landing is the end of a call that has begun.
type landing struct {
	at int64 // Unix nanoseconds
	*collector.Entry
	name   int32
	failed bool
}

// flight is the calls that have begun, the next to end first.
type flight []landing

func (f flight) Len() int           { return len(f) }
func (f flight) Less(i, j int) bool { return f[i].at < f[j].at }
func (f flight) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)        { *f = append(*f, x.(landing)) }
func (f *flight) Pop() any {
	old := *f
	last := old[len(old)-1]
	*f = old[:len(old)-1]
	return last
}

func (f *flight) add(l landing) { heap.Push(f, l) }

// next takes out the call that ends first, if it ends before this time.
func (f *flight) next(before int64) (landing, bool) {
	if len(*f) == 0 || (*f)[0].at >= before {
		return landing{}, false
	}
	return heap.Pop(f).(landing), true
}
