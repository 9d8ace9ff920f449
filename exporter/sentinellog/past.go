package sentinellog

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// past reads older seconds of a process from its files, for consumers that are catching up. It keeps one block of
// seconds. A consumer gets one block after another, and each row is read once, with or without an index. If several
// consumers have different positions, each of them reads the files again.
type past struct {
	mu    sync.Mutex // guards the fields below; held while files are read
	tails map[string]*metriclog.Tail
	block *history
	to    int64 // end of the seconds in block
	used  time.Time
}

// blockSeconds is the number of seconds in a block. With 2,000 rows a second, a block takes some 8 MB.
const blockSeconds = 600

// read returns the block with the second from. end is the end of the seconds whose rows are final. The caller must not
// change the block.
func (x *past) read(
	dir string, log metriclog.Log, sum bool, from, end int64,
) (block *history, to int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.used = time.Now()
	if x.block != nil && x.block.from <= from && from < x.to {
		return x.block, x.to, nil
	}
	begin := from
	switch {
	case x.block != nil && x.to == from:
		x.block = x.block.after(from)
	default:
		x.tails, x.block = map[string]*metriclog.Tail{}, newHistory(from)
		begin = from - maxIdle // these rows name the resources
	}
	x.to = min(from+blockSeconds, end)
	files, err := metriclog.Searcher{Dir: dir, App: log.App}.Files()
	errs := []error{err}
	for _, file := range files {
		if !sum && file.PID != log.PID {
			continue
		}
		t := x.tails[file.Name]
		if t == nil {
			if t, err = metriclog.NewTail(dir, file); err != nil || t.Ended(time.Unix(begin, 0)) {
				continue
			}
			_ = t.Seek(time.Unix(begin, 0)) // without an index, the file is read from its first line
			x.tails[file.Name] = t
		}
		err = t.Read(func(r *metriclog.Row) bool {
			n, ok := newRow(r)
			if ok && n.at >= x.to {
				return false
			}
			if ok && n.at >= begin {
				x.block.add(r.Resource, n)
			}
			return true
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // retention deleted it
			errs = append(errs, err)
		}
	}
	return x.block, x.to, errors.Join(errs...)
}

// release frees the block if no consumer has used it for a minute.
func (x *past) release() {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	if time.Since(x.used) > time.Minute {
		x.tails, x.block = nil, nil
	}
}

// bytes returns the approximate memory of the block.
func (x *past) bytes() int {
	if !x.mu.TryLock() {
		return 0
	}
	defer x.mu.Unlock()
	if x.block == nil {
		return 0
	}
	return x.block.bytes
}
