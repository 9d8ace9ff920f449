package live

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// processMeter measures the resource usage of the process in each second, so viewers can distinguish a slow service
// from a slow machine. A measurement is compared with the one before, so it must happen soon after the end of each
// second: by [Page.Run], and otherwise by the first request after that, while the page has viewers. Values that the
// machine does not provide are -1. The cgroup values need Linux and cgroup version 2.
type processMeter struct {
	root       fs.FS        // root of the machine's file system
	statistics func() int64 // bytes of windowstat's own statistics

	mu       sync.Mutex // guards the fields below
	next     int64      // index of the second after the last measurement
	previous measurement
	seconds  [][]int64 // ascending, each the Unix time and processColumns
}

// processColumns names the numbers of a second. Times are in microseconds.
var processColumns = [...]string{
	"cpu",           // CPU time of the process
	"throttled",     // time that the cgroup spent throttled
	"waited",        // time that any task of the cgroup spent waiting for a CPU
	"memory_events", // number of times that the cgroup reached a memory limit
	"heap",          // bytes of heap objects
	"memory",        // bytes of the cgroup
	"goroutines",
	"statistics", // bytes of windowstat's own statistics, part of heap
	"latency",    // p99 of the time that goroutines waited for a processor
	"pause",      // longest pause by the garbage collector
}

// counterColumns is the number of columns that are counters. They come first; the next four are gauges.
const counterColumns = 4

// measurement holds the values of one instant.
type measurement struct {
	at     leap.Reading
	values [8]int64                     // counters since the start, then gauges
	delays [2]*metrics.Float64Histogram // latency and pause, since the start
}

// measureSecond measures at the end of the last sealed second, unless an earlier call did. open is the index of the
// open second, unix the Unix time of the last sealed one, and now the current reading. The second gets a row only if
// the second before it was measured as well, more than half a second ago.
func (p *processMeter) measureSecond(open, unix int64, now leap.Reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= open {
		return
	}
	m := p.measure(now)
	if elapsed := now.Sub(p.previous.at); p.next == open-1 && elapsed > time.Second/2 {
		row := append(make([]int64, 0, 1+len(processColumns)), unix)
		for i, v := range m.values {
			if before := p.previous.values[i]; i < counterColumns && v >= 0 {
				if v -= before; before < 0 || v < 0 {
					v = -1
				}
				v = int64(float64(v) / elapsed.Seconds()) // a delayed measurement covers more than a second
			}
			row = append(row, v)
		}
		row = append(row,
			deltaQuantile(p.previous.delays[0], m.delays[0], .99), deltaQuantile(p.previous.delays[1], m.delays[1], 1))
		p.seconds = append(p.seconds, row)
		p.seconds = p.seconds[max(0, len(p.seconds)-keptSeconds):]
	}
	p.next, p.previous = open, m
}

// after returns the seconds after the Unix time last.
func (p *processMeter) after(last int64) [][]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := len(p.seconds)
	for i > 0 && p.seconds[i-1][0] > last {
		i--
	}
	return append([][]int64{}, p.seconds[i:]...)
}

// measure reads the values of the runtime, of the process and of its cgroup.
func (p *processMeter) measure(now leap.Reading) measurement {
	read := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/sched/latencies:seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(read)
	group := p.cgroup()
	memoryEvents := int64(-1)
	if events := p.readFile(group + "/memory.events"); events != "" {
		memoryEvents = fieldValue(events, "high ") + fieldValue(events, "max ") + fieldValue(events, "oom_kill ")
	}
	return measurement{now, [...]int64{
		p.cpuTime(),
		fieldValue(p.readFile(group+"/cpu.stat"), "throttled_usec "),
		fieldValue(p.readFile(group+"/cpu.pressure"), "total="),
		memoryEvents,
		int64(read[0].Value.Uint64()),
		parseNumber(p.readFile(group + "/memory.current")),
		int64(read[1].Value.Uint64()),
		p.statistics(),
	}, [...]*metrics.Float64Histogram{read[2].Value.Float64Histogram(), read[3].Value.Float64Histogram()}}
}

// cgroup returns the directory of the process's cgroup: the path in /proc/self/cgroup below /sys/fs/cgroup, or
// /sys/fs/cgroup itself in a container that sees only its own cgroup.
func (p *processMeter) cgroup() string {
	const root = "sys/fs/cgroup"
	_, group, _ := strings.Cut("\n"+p.readFile("proc/self/cgroup"), "\n0::")
	group, _, _ = strings.Cut(group, "\n")
	if dir := path.Join(root, group); p.readFile(dir+"/cpu.stat") != "" {
		return dir
	}
	return root
}

// cpuTime returns the user and system time of the process in microseconds, or -1.
func (p *processMeter) cpuTime() int64 {
	stat := p.readFile("proc/self/stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // the program's name may contain spaces
	if len(fields) <= 12 {
		return -1
	}
	return (parseNumber(fields[11]) + parseNumber(fields[12])) * 10_000 // ticks of 10 ms
}

// readFile returns the content of a file of the machine, or "" if it cannot be read.
func (p *processMeter) readFile(name string) string {
	b, _ := fs.ReadFile(p.root, name)
	return string(b)
}

// fieldValue returns the number after the first occurrence of name in a text, or -1.
func fieldValue(text, name string) int64 {
	_, rest, _ := strings.Cut(text, name)
	return parseNumber(rest)
}

// parseNumber returns the number at the beginning of a text, or -1. A cgroup without a limit has "max" instead of one.
func parseNumber(text string) int64 {
	n := int64(-1)
	_, _ = fmt.Sscan(text, &n) // an error leaves n unchanged
	return n
}

// deltaQuantile returns the quantile q of the values that were added between two readings of a histogram, in
// microseconds, or 0 if none were added. The result is the upper bound of the quantile's bucket, or the lower bound if
// the upper bound is infinite.
func deltaQuantile(before, now *metrics.Float64Histogram, q float64) int64 {
	total := uint64(0)
	for i := range now.Counts {
		total += now.Counts[i] - before.Counts[i]
	}
	sum, bound := uint64(0), 0.
	for i := range now.Counts {
		if n := now.Counts[i] - before.Counts[i]; n > 0 && float64(sum) < q*float64(total) {
			if bound = now.Buckets[i+1]; math.IsInf(bound, 1) {
				bound = now.Buckets[i]
			}
		}
		sum += now.Counts[i] - before.Counts[i]
	}
	return int64(bound * 1e6)
}

// machineRoot is the root of the machine's file system.
var machineRoot = os.DirFS("/")
