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

// process is what the process had of the machine in each second, so that a viewer sees whether the service or the machine is
// slow. It is measured while somebody looks: when a second is over, against when it began. What the machine does not tell is -1;
// the cgroup is that of Linux, version 2.
type process struct {
	root fs.FS // of the machine

	mu      sync.Mutex // guards what follows
	next    int64      // index of the second after the last measurement
	before  measured
	seconds [][]int64 // ascending, each the Unix time and processColumns
}

// processColumns are the numbers of a second; times are in microseconds.
var processColumns = [...]string{
	"cpu",                 // that the process used
	"throttled", "waited", // for which the cgroup was throttled, and for which something in it waited for a processor
	"memory_events",  // times that the cgroup came to a limit of its memory
	"heap", "memory", // bytes of the heap, and of the cgroup
	"goroutines",       //
	"latency", "pause", // p99 of goroutines that waited for a processor, and the longest pause of the garbage collector
}

const counters = 4 // of the columns, which come first

// measured is what was read at a moment.
type measured struct {
	at     leap.Reading
	values [7]int64                     // counters since the start, and levels
	delays [2]*metrics.Float64Histogram // since the start
}

// until measures at the end of the second before open, unless that is done.
func (p *process) until(open, unix int64, now leap.Reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= open {
		return
	}
	m := p.measure(now)
	if took := now.Sub(p.before.at); p.next == open-1 && took > time.Second/2 {
		row := append(make([]int64, 0, 1+len(processColumns)), unix)
		for i, v := range m.values {
			if was := p.before.values[i]; i < counters && v >= 0 {
				if v -= was; was < 0 || v < 0 {
					v = -1
				}
				v = int64(float64(v) / took.Seconds()) // a late measurement covers more than a second
			}
			row = append(row, v)
		}
		row = append(row, delay(p.before.delays[0], m.delays[0], .99), delay(p.before.delays[1], m.delays[1], 1))
		p.seconds = append(p.seconds, row)
		p.seconds = p.seconds[max(0, len(p.seconds)-keptSeconds):]
	}
	p.next, p.before = open, m
}

// after returns the seconds after last.
func (p *process) after(last int64) [][]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := len(p.seconds)
	for i > 0 && p.seconds[i-1][0] > last {
		i--
	}
	return append([][]int64{}, p.seconds[i:]...)
}

// measure reads what there is at a moment: of the runtime, of the process, and of the cgroup, whose files are below the path that the
// kernel says, or at the root where a container sees its own only.
func (p *process) measure(now leap.Reading) measured {
	read := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/sched/latencies:seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(read)
	group := "sys/fs/cgroup"
	_, below, _ := strings.Cut("\n"+p.file("proc/self/cgroup"), "\n0::")
	below, _, _ = strings.Cut(below, "\n")
	if own := path.Join(group, below); p.file(own+"/cpu.stat") != "" { // or the root is the container's own
		group = own
	}
	cpu := int64(-1)
	stat := p.file("proc/self/stat")
	if f := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]); len(f) > 12 { // behind the name of the program
		cpu = (number(f[11]) + number(f[12])) * 10_000 // ticks of 10 ms
	}
	events := p.file(group + "/memory.events")
	limits := int64(-1)
	if events != "" {
		limits = field(events, "high ") + field(events, "max ") + field(events, "oom_kill ")
	}
	return measured{now, [...]int64{
		cpu, field(p.file(group+"/cpu.stat"), "throttled_usec "), field(p.file(group+"/cpu.pressure"), "total="), limits,
		int64(read[0].Value.Uint64()), number(p.file(group + "/memory.current")), int64(read[1].Value.Uint64()),
	}, [...]*metrics.Float64Histogram{read[2].Value.Float64Histogram(), read[3].Value.Float64Histogram()}}
}

// file reads a file of the machine; one that it has not is empty.
func (p *process) file(name string) string {
	b, _ := fs.ReadFile(p.root, name)
	return string(b)
}

// field is the number behind a name in a file, -1 if there is none.
func field(text, name string) int64 {
	_, rest, _ := strings.Cut(text, name)
	return number(rest)
}

// number is the number at the beginning of a text, -1 if there is none: "max" is what the cgroup has without a limit.
func number(text string) int64 {
	n := int64(-1)
	_, _ = fmt.Sscan(text, &n) // which leaves it as it is then
	return n
}

// delay is a quantile of what came between two histograms, in microseconds: the upper bound of its bucket, or the lower one if
// that has none. It is 0 if nothing came.
func delay(before, now *metrics.Float64Histogram, q float64) int64 {
	all := uint64(0)
	for i := range now.Counts {
		all += now.Counts[i] - before.Counts[i]
	}
	sum, at := uint64(0), 0.
	for i := range now.Counts {
		if n := now.Counts[i] - before.Counts[i]; n > 0 && float64(sum) < q*float64(all) {
			if at = now.Buckets[i+1]; math.IsInf(at, 1) {
				at = now.Buckets[i]
			}
		}
		sum += now.Counts[i] - before.Counts[i]
	}
	return int64(at * 1e6)
}

// machine is the root of the machine's files.
var machine = os.DirFS("/")
