// Package runs maps the seconds of a metric log to the processes that counted them.
//
// A run is the number that a Collector draws at its start. Each second in a database carries it in
// windowstat_persecond_run, and each second in the log carries it in the row of the total. A log holds the seconds of
// many processes, which may have had different labels in the database; a heal writes a second only under the labels of
// its run.
//
// A file next to the log adds facts about a run that rows cannot hold: the process ID, how long the process keeps its
// history for scrapers, and the labels of its pushes. The rows decide which run counted a second: see [Merge]. For rows
// of older versions, which have no run, the file decides, but only between the first and the last second that it states
// for a run.
package runs

import (
	"cmp"
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
	ID    int64 // of its Collector; see [collector.Collector.RunID]
	PID   int   `json:",omitempty"`
	First int64 // Unix time of its first second
	// History is the number of seconds that the process kept for scrapers, or 0 if unknown.
	History int64 `json:",omitempty"`
	// Last is the Unix time of its last second in the log. It is 0 while the process runs, and after a crash until the
	// next process starts.
	Last int64 `json:",omitempty"`
	// Labels are the labels of its pushes, by push. A push that the process did not have is missing.
	Labels map[string]map[string]string `json:",omitempty"`
}

// rebuilt is the number of seconds whose runs Open reads from the rows if there is no file.
const rebuilt = 24 * 60 * 60

// maxRuns limits the runs in a file; the oldest are dropped. A process that crashes every ten seconds needs a day to
// reach it.
const maxRuns = 10_000

// File holds the runs of a log. The zero value has no runs and no file. It is safe for concurrent use.
type File struct {
	path string
	own  bool // the last run is this process

	mu    sync.Mutex // guards the fields below
	list  []Run      // ascending by First
	stale bool       // the file on disk lacks a change
}

// Open reads the file at path, adds the run own, and saves the file. Last is the last second in the log; own starts
// after it. Runs that ended before oldest, the first second in the log, are dropped. Rows returns the runs in the rows
// of the log from a second on. Open calls it to find the end of the previous process, and of processes that could not
// save the file.
//
// A file that cannot be read is renamed, and the File starts without earlier runs. A file that cannot be written is
// saved by a later [File.Save]. Open returns both as the error; the File can be used in either case.
func Open(path string, own Run, oldest, last int64, rows func(from int64) []Run) (*File, error) {
	list, err := atomicfile.Load(path, check)
	f := &File{path: path, list: list, own: true}
	switch n := len(f.list); {
	case n == 0 && last > 0:
		f.list = Merge(nil, rows(last-rebuilt))
	case n > 0 && f.list[n-1].Last == 0:
		previous := &f.list[n-1]
		previous.Last = max(min(last, own.First-1), previous.First)
		f.list = Merge(f.list, rows(previous.First))
	}
	// A run that starts at or after the first second of this process never logged a second.
	f.list = slices.DeleteFunc(
		f.list,
		func(r Run) bool { return r.First >= own.First || r.Last != 0 && r.Last < oldest },
	)
	f.list = append(f.list, own)
	if n := len(f.list); n > maxRuns {
		f.list = f.list[n-maxRuns:]
	}
	return f, errors.Join(err, f.save())
}

// Merge returns the runs of a file, list, corrected by the runs in the rows of its log, rows. Both are ascending by
// First. A run of the rows has exactly the seconds between its first and its last row. A run without rows keeps the
// seconds that it states, as far as no row belongs to another run.
func Merge(list, rows []Run) []Run {
	stated := map[int64]Run{}
	for _, r := range list {
		stated[r.ID] = r
	}
	var all []Run
	counted := map[int64]bool{}
	for i, r := range rows {
		counted[r.ID] = true
		if of, ok := stated[r.ID]; ok {
			// Until its first row, a process may have had nothing to log.
			first := min(r.First, of.First)
			if i > 0 {
				first = max(first, rows[i-1].Last+1)
			}
			r.First, r.PID, r.History, r.Labels = first, of.PID, of.History, of.Labels
		}
		all = append(all, r)
	}
	merged := len(all)
	for _, r := range list {
		if counted[r.ID] {
			continue
		}
		for _, x := range all[:merged] {
			switch {
			case x.First <= r.First:
				r.First = max(r.First, x.Last+1)
			case r.Last >= x.First:
				r.Last = x.First - 1
			}
		}
		if r.Last == 0 || r.Last >= r.First {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	return slices.CompactFunc(all, func(a, b Run) bool { return a.First == b.First })
}

// New returns a File with the given runs, ascending by First, and without a path. SetLabels and Save must not be
// called.
func New(list []Run) *File { return &File{list: list} }

// Read reads the runs in a file, in order. It returns no runs without a file.
func Read(path string) ([]Run, error) {
	var list []Run
	if err := atomicfile.Read(path, &list); err != nil {
		return nil, err
	}
	if err := check(list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// check returns an error for a list that no process wrote.
func check(list []Run) error {
	for i, r := range list {
		if r.ID <= 0 || r.First <= 0 || r.Last != 0 && r.Last < r.First || i > 0 && r.First <= list[i-1].First {
			return fmt.Errorf("run %d is invalid or out of order", i)
		}
	}
	return nil
}

// SetLabels records the labels of a push of this process, the last run.
func (f *File) SetLabels(push string, labels map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := &f.list[len(f.list)-1]
	all := map[string]map[string]string{}
	maps.Copy(all, own.Labels)
	all[push] = maps.Clone(labels)
	own.Labels = all // a new map, because callers of At read the old one without the lock
	return f.save()
}

// ID returns the run that counted a second of the log, or 0 if it is unknown. A nil File knows no run.
func (f *File) ID(unix int64) int64 {
	if f == nil {
		return 0
	}
	r, until := f.At(unix)
	if unix <= r.Last || r.Last == 0 && f.own && until == forever {
		return r.ID
	}
	return 0
}

// forever is later than all seconds.
const forever = 1 << 60

// At returns the latest run that started at or before a second of the log, and the first second of the next run. It
// returns the zero Run for a second before all runs. The second may be later than the end of the run: see [File.ID].
func (f *File) At(unix int64) (r Run, until int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := sort.Search(len(f.list), func(i int) bool { return f.list[i].First > unix })
	if until = forever; i < len(f.list) {
		until = f.list[i].First
	}
	if i == 0 {
		return Run{}, until
	}
	return f.list[i-1], until
}

// After returns the runs that started after a second, ascending. The caller must not change them.
func (f *File) After(unix int64) []Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := sort.Search(len(f.list), func(i int) bool { return f.list[i].First > unix })
	return f.list[i:]
}

// Save writes the file if an earlier attempt failed. It is cheap otherwise.
func (f *File) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stale {
		return nil
	}
	return f.save()
}

// save replaces the file. mu must be held.
func (f *File) save() error {
	err := atomicfile.Replace(f.path, f.list)
	f.stale = err != nil
	return err
}
