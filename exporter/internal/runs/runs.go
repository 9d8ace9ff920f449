// Package runs keeps a file beside a metric log that says which process counted which of its seconds.
//
// A run is a process, by the number that its Collector has drawn and that each of its seconds carries in windowstat_persecond_run. The
// log has the seconds of many processes behind each other and does not tell them apart. A heal needs to, because two processes may have
// had different labels in the database: the file says which run a second of the log belongs to, and under which labels it was pushed.
package runs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/windowstat/windowstat/internal/atomicfile"
)

// Run is a process that counted seconds of a log.
type Run struct {
	ID    int64 // of its Collector, see [collector.Collector.RunID]
	PID   int   `json:",omitempty"`
	First int64 // Unix time of its first second
	// History is how many seconds the process kept for scrapers, 0 if unknown.
	History int64 `json:",omitempty"`
	// Last is the Unix time of its last second in the log, 0 while it runs; a process that was killed gets it from the next one.
	Last int64 `json:",omitempty"`
	// Labels are those under which its seconds were pushed, by the push; there are none of one that it did not have.
	Labels map[string]map[string]string `json:",omitempty"`
}

// maxRuns is how many runs a file keeps; the oldest go. A process that crashes every ten seconds needs a day for them.
const maxRuns = 10_000

// File is the runs of a log. The zero value has none and no file. It is safe for concurrent use.
type File struct {
	path string

	mu   sync.Mutex // guards what follows
	list []Run      // in the order of First
}

// Open reads the file and adds own, which begins after last, the last second in the log; runs that ended before oldest, the first
// second in the log, are dropped. A file that cannot be read is set aside, and the File begins anew; one that cannot be written
// costs the next process its knowledge. Both are the error, and the File can be used all the same.
func Open(path string, own Run, oldest, last int64) (*File, error) {
	list, err := Read(path)
	if err != nil {
		aside, cause := atomicfile.SetAside(path, err)
		err = fmt.Errorf("the file of runs cannot be read, and is set aside as %s: %w", aside, cause)
	}
	f := &File{path: path, list: list}
	if n := len(f.list); n > 0 && f.list[n-1].Last == 0 {
		f.list[n-1].Last = max(min(last, own.First-1), f.list[n-1].First)
	}
	// What began with or after this process never logged a second.
	f.list = slices.DeleteFunc(f.list, func(r Run) bool { return r.First >= own.First || r.Last != 0 && r.Last < oldest })
	f.list = append(f.list, own)
	if n := len(f.list); n > maxRuns {
		f.list = f.list[n-maxRuns:]
	}
	return f, errors.Join(err, f.save())
}

// Load reads a file of runs of other processes; it has none if there is no file. SetLabels must not be called.
func Load(path string) (*File, error) {
	list, err := Read(path)
	return &File{list: list}, err
}

// Read reads the runs in a file, in order; there are none without a file.
func Read(path string) ([]Run, error) {
	var list []Run
	if err := atomicfile.Read(path, &list); err != nil {
		return nil, err
	}
	for i, r := range list {
		if r.ID <= 0 || r.First <= 0 || r.Last != 0 && r.Last < r.First || i > 0 && r.First <= list[i-1].First {
			return nil, fmt.Errorf("%s: run %d is not one, or not in order", path, i)
		}
	}
	return list, nil
}

// SetLabels records under which labels this process, the last one, pushes its seconds.
func (f *File) SetLabels(push string, labels map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := &f.list[len(f.list)-1]
	all := map[string]map[string]string{}
	maps.Copy(all, own.Labels)
	all[push] = maps.Clone(labels)
	own.Labels = all // a new map: who has got the old one by At reads it without the lock
	return f.save()
}

// ID is the number of the run that counted a second of the log, 0 if none is known. A nil File knows none.
func (f *File) ID(unix int64) int64 {
	if f == nil {
		return 0
	}
	if r, _ := f.At(unix); r.Last == 0 || unix <= r.Last {
		return r.ID
	}
	return 0
}

// At is the run that counted a second of the log, and the second before which all are of this run. It is the zero Run for a second
// that no run has.
func (f *File) At(unix int64) (r Run, until int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const forever = 1 << 60
	i := sort.Search(len(f.list), func(i int) bool { return f.list[i].First > unix })
	if until = forever; i < len(f.list) {
		until = f.list[i].First
	}
	if i == 0 {
		return Run{}, until
	}
	return f.list[i-1], until
}

// save replaces the file. Holds mu.
func (f *File) save() error { return atomicfile.Replace(f.path, f.list) }
