package sentinellog

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// row holds the numbers of one resource in one second. The response times are in milliseconds: their sum is at least
// rt*complete + rest, because the log has the average rounded down. rest is less than complete.
type row struct {
	at                                         int64 // Unix time
	pass, block, complete, exception, occupied int64
	rt, rest                                   int64
	concurrency                                int64
}

// maxCount is the largest count that a row may have. Larger ones, and negative ones, cannot be counts of a second. The
// bound keeps all sums of rows within an int64.
const maxCount = 1 << 40

// newRow returns a row of a log. It returns false if the numbers cannot be counts of calls. An average response time
// out of range counts as zero. In a second without completed calls, Java logs the sum of the response times instead of
// their average; newRow drops it.
func newRow(r *metriclog.Row) (row, bool) {
	n := row{
		at: r.Start.Unix(), pass: r.Pass, block: r.Block, complete: r.Success, exception: r.Exception,
		occupied: r.OccupiedPass, rt: r.RT.Milliseconds(), concurrency: r.Concurrency,
	}
	for _, v := range [...]int64{n.pass, n.block, n.complete, n.exception, n.occupied, n.concurrency} {
		if v < 0 || v > maxCount {
			return row{}, false
		}
	}
	if n.complete == 0 || n.rt < 0 || n.rt > maxCount/n.complete {
		n.rt = 0
	}
	return n, true
}

// add adds the row of another process, or another row of the same second. Maxima are not summed: the highest one is a
// lower bound of the maximum of all.
func (r *row) add(o row) {
	sum := r.rt*r.complete + r.rest + o.rt*o.complete + o.rest
	r.pass, r.block, r.complete = r.pass+o.pass, r.block+o.block, r.complete+o.complete
	r.exception, r.occupied = r.exception+o.exception, r.occupied+o.occupied
	r.concurrency = max(r.concurrency, o.concurrency)
	if r.complete > 0 {
		r.rt, r.rest = sum/r.complete, sum%r.complete
	}
}

// record returns the row as a record, with the fields that the log has.
func (r *row) record() node.MetricNode {
	return node.MetricNode{
		Start: time.Unix(r.at, 0).UTC(),
		Counts: node.Counts{
			Pass: r.pass, Block: r.block, Complete: r.complete, Exception: r.exception, OccupiedPass: r.occupied,
			RTSum: time.Duration(r.rt*r.complete+r.rest) * time.Millisecond,
		},
		InFlightMax: r.concurrency,
	}
}

// chunk holds packed rows of a resource, in ascending order of seconds, each second once. A row takes three to eight
// bytes: a byte that says which fields follow, the passes, and these fields, as varints.
type chunk struct {
	first, last int64 // Unix times
	n           int   // number of rows
	data        []byte
}

// maxChunk is the number of rows in a chunk. A lookup unpacks one chunk, and an old chunk is dropped as a whole.
const maxChunk = 64

// Flags of the fields that follow the passes. Without its flag, a field has its usual value: the next second, no
// response time, as many completions as passes, and zero otherwise.
const (
	hasGap = 1 << iota
	hasBlock
	hasComplete
	hasException
	hasOccupied
	hasRT
	hasRest
	hasConcurrency
)

// append packs a row that is later than all others.
func (c *chunk) append(r *row) {
	if c.n == 0 {
		c.first, c.last = r.at, r.at-1
	}
	flags, at := byte(0), len(c.data)
	b := append(c.data, 0)
	b = binary.AppendUvarint(b, uint64(r.pass))
	add := func(flag byte, v, usual int64) {
		if v != usual {
			flags |= flag
			b = binary.AppendVarint(b, v-usual)
		}
	}
	add(hasGap, r.at-c.last, 1)
	add(hasBlock, r.block, 0)
	add(hasComplete, r.complete, r.pass)
	add(hasException, r.exception, 0)
	add(hasOccupied, r.occupied, 0)
	add(hasRT, r.rt, 0)
	add(hasRest, r.rest, 0)
	add(hasConcurrency, r.concurrency, 0)
	b[at] = flags
	c.data, c.last = b, r.at
	c.n++
}

// rows unpacks all rows and appends them to list.
func (c *chunk) rows(list []row) []row {
	b, at := c.data, c.first-1
	for range c.n {
		flags := b[0]
		pass, n := binary.Uvarint(b[1:])
		b = b[1+n:]
		next := func(flag byte, usual int64) int64 {
			if flags&flag == 0 {
				return usual
			}
			v, n := binary.Varint(b)
			b = b[n:]
			return usual + v
		}
		r := row{pass: int64(pass)}
		at += next(hasGap, 1)
		r.at = at
		r.block = next(hasBlock, 0)
		r.complete = next(hasComplete, r.pass)
		r.exception = next(hasException, 0)
		r.occupied = next(hasOccupied, 0)
		r.rt = next(hasRT, 0)
		r.rest = next(hasRest, 0)
		r.concurrency = next(hasConcurrency, 0)
		list = append(list, r)
	}
	return list
}

// insert packs a row of any second. It adds the row to an existing row of this second.
func (c *chunk) insert(r row) {
	list := c.rows(make([]row, 0, c.n+1))
	i, ok := slices.BinarySearchFunc(list, r.at, func(x row, at int64) int { return int(x.at - at) })
	if ok {
		list[i].add(r)
	} else {
		list = slices.Insert(list, i, r)
	}
	c.n, c.data = 0, c.data[:0]
	for i := range list {
		c.append(&list[i])
	}
}
