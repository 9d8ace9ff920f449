package sentinellog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

// Follower follows the metric logs of a directory, and is the source of a per-second page and of pushes. Create it with
// [New]. It is safe for concurrent use, but Run must be called only once.
type Follower struct {
	opts      Options
	stats     *collector.Collector // the clock, and the metrics about the Follower; it counts nothing
	line      *seconds.Line
	families  *seconds.RowFamilies
	lock      *filelock.File
	unpublish func()

	mu         sync.Mutex       // guards the fields below
	sealed     int64            // consumers may have seen all seconds of the line before it
	saved      state            // of the previous Follower
	processes  []*process       // sorted by name
	tails      map[string]*tail // by the name of the file
	files      []string         // names in tails, by log, date and number: rows are read in the order of writing
	kept       int64            // number of seconds in memory
	stateFiles []string
	malformed  map[string]int64 // number of malformed lines by application
	loading    bool             // New reads rows that the previous Follower may have read

	failures failures
}

// tail reads a file of a process.
type tail struct {
	*metriclog.Tail
	of        *process
	malformed int64 // number of malformed lines at the last poll
	invalid   int64 // number of rows that cannot be counts of calls
}

// New returns a Follower. It locks the state directory, and reads the last 70 minutes of all logs: ten minutes that it
// keeps in memory, and before that the names of the resources. c provides the clock and publishes metrics about the
// Follower; it should count no calls. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Follower, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "sentinellog", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	o.defaults()
	f := &Follower{
		opts: o, stats: c, families: seconds.NewSentinelFamilies(o.Namespace), tails: map[string]*tail{},
		kept: int64(DefaultHistory / time.Second), malformed: map[string]int64{},
	}
	if f.lock, err = filelock.Lock(f.path(lockName)); err != nil {
		err = fmt.Errorf("%w; another process follows the logs, or the directory is not writable", err)
		return nil, &collector.OptionError{Package: "sentinellog", Field: "StateDir", Err: err}
	}
	f.line = seconds.NewLine(source{f})
	f.load()
	f.loading = true
	f.poll(o.Lag)
	f.loading = false
	for _, p := range f.processes {
		p.loaded = 0
	}
	f.unpublish = c.Publish(f.metrics()...)
	return f, nil
}

// Close releases the lock and removes the metrics. All consumers must have ended, because the next Follower uses the
// same files. Close may be called several times.
func (f *Follower) Close() error {
	f.unpublish()
	return f.lock.Close()
}

// Seconds returns the per-second page of the logs. A Follower has one.
func (f *Follower) Seconds(o prom.SecondsOptions) (*prom.Seconds, error) {
	o.Namespace = f.opts.Namespace
	return prom.NewArchivedSeconds(source{f}, []seconds.Stream{stream{f}}, o)
}

// Push returns a Pusher that sends the logs to a server.
func (f *Follower) Push(o push.Options) (*push.Pusher, error) {
	o.Namespace = f.opts.Namespace
	return push.NewArchived(source{f}, []seconds.Stream{stream{f}}, o)
}

// pollInterval is the time between two polls of the logs.
const pollInterval = time.Second

// Run reads the logs every second until ctx ends. It then waits for two seconds and lets consumers see all seconds
// before the end of ctx, because the logs of a pod end with the pod. With Options.Sum they see the seconds that ended
// Lag before. The caller must then end the consumers, and call Close.
func (f *Follower) Run(ctx context.Context) error {
	for background.Sleep(ctx, pollInterval) {
		f.poll(f.opts.Lag)
	}
	last := f.line.Open()
	time.Sleep(lastRows)
	if f.opts.Sum {
		f.poll(f.opts.Lag)
	} else {
		f.poll(time.Duration(f.line.Count(last, f.line.Open())) * time.Second)
	}
	return nil
}

// lastRows is the time in which Sentinel writes the rows of a second that has ended, and a poll reads them.
const lastRows = 2200 * time.Millisecond

// poll reads all rows that were written since the last poll. Then it lets consumers see the seconds that ended lag
// before the poll began: all their rows that were written in time have been read.
func (f *Follower) poll(lag time.Duration) {
	open := f.line.Open()
	f.discover(open)
	margin := int64(0)
	if !f.loading { // nothing is exported before all files are read
		margin = min(max(int64(f.opts.Lag/time.Second)-2, 1), maxMargin)
	}
	for _, name := range f.files {
		t := f.tails[name]
		err := t.Read(func(r *metriclog.Row) bool {
			n, ok := newRow(r)
			if !ok {
				t.invalid++
				return true
			}
			f.mu.Lock()
			t.of.add(r.Resource, n, f.sealed, margin)
			f.mu.Unlock()
			return true
		})
		if errors.Is(err, fs.ErrNotExist) { // retention deleted it
			err = nil
		}
		f.failures.set(f, name, err, "cannot read a file of a metric log")
		f.countMalformed(name, t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	sealed := max(f.sealed, f.line.Before(open, int64(lag/time.Second)))
	for _, p := range f.processes {
		p.export(sealed)
	}
	f.save(sealed)
	f.sealed = sealed
	f.drop()
}

// maxMargin is the number of seconds of the line until a late row is exported, see process.add. Punctual rows are read
// at least as long before.
const maxMargin = 3

// discover creates the processes and the tails of new files, and removes the tails of deleted ones.
func (f *Follower) discover(open int64) {
	files, err := metriclog.Searcher{Dir: f.opts.Dir, App: f.opts.App}.Files()
	f.failures.set(f, "", err, "cannot read the directory of the metric logs")
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	from := f.line.Before(open, f.kept)
	exists, logs := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		exists[file.Name] = true
		logs[f.name(file.Log)] = true
		if f.tails[file.Name] != nil {
			continue
		}
		t, err := metriclog.NewTail(f.opts.Dir, file)
		if err != nil || t.Ended(f.time(open, f.opts.Keep)) {
			continue // too old for all consumers
		}
		p := f.process(file.Log, from)
		if begin := f.time(open, DefaultHistory+time.Duration(maxIdle)*time.Second); !t.Ended(begin) {
			_ = t.Seek(begin) // without an index, the file is read from its first line
			f.tails[file.Name] = &tail{Tail: t, of: p}
		}
	}
	f.files = f.files[:0]
	for _, file := range files {
		if f.tails[file.Name] != nil {
			f.files = append(f.files, file.Name)
		}
	}
	for name := range f.tails {
		if !exists[name] {
			delete(f.tails, name)
			f.failures.set(f, name, nil, "")
		}
	}
	// A process ends with its files, but its rows stay for as long as rows are kept in memory.
	f.processes = slices.DeleteFunc(f.processes, func(p *process) bool { return !logs[p.name] && p.last < from })
}

// time returns the time d before the second open.
func (f *Follower) time(open int64, d time.Duration) time.Time { return time.Unix(open, 0).Add(-d) }

// process returns the process of a log, and creates the process if necessary. mu must be held.
func (f *Follower) process(log metriclog.Log, from int64) *process {
	i, ok := slices.BinarySearchFunc(f.processes, f.name(log), func(p *process, name string) int {
		return strings.Compare(p.name, name)
	})
	if ok {
		return f.processes[i]
	}
	p := newProcess(log, f.opts.Sum, from)
	if saved, ok := f.saved.Processes[p.name]; ok {
		p.run, p.exported, p.delays = saved.Run, saved.Exported, saved.Delays
		if f.loading {
			p.loaded = saved.Exported
		}
	}
	f.processes = slices.Insert(f.processes, i, p)
	return p
}

// name returns the name of the process of a log.
func (f *Follower) name(log metriclog.Log) string {
	if f.opts.Sum {
		log.PID = 0
	}
	return log.String()
}

// drop drops the rows that have left the memory. If the rows take too much memory, fewer seconds are kept. mu must be
// held.
func (f *Follower) drop() {
	total := 0
	for _, p := range f.processes {
		total += p.bytes
	}
	full := int64(DefaultHistory / time.Second)
	switch {
	case total > f.opts.MaxBytes:
		f.kept = max(f.kept-f.kept/10, 60)
	case total < f.opts.MaxBytes*3/4 && f.kept < full:
		f.kept = min(f.kept+1, full)
	case f.sealed%15 != 0:
		return
	}
	from := f.line.Before(f.sealed, f.kept)
	for _, p := range f.processes {
		p.history.drop(p.end(from))
		p.past.release()
	}
}

// countMalformed counts the malformed lines of a file. It logs the first ones.
func (f *Follower) countMalformed(name string, t *tail) {
	n := t.Malformed() + t.invalid
	if n == t.malformed {
		return
	}
	if t.malformed == 0 {
		f.opts.Logger.Warn("a file of a metric log has malformed lines, which are skipped", "file", name, "lines", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.malformed[t.of.log.App] += n - t.malformed
	t.malformed = n
}
