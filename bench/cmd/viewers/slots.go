package main

import (
	"errors"
	"log"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
)

// slot is how long it is the turn of those with viewers, or of those without: three quarters of it for what the process
// uses and sends, the rest for calls.
const slot = 20 * time.Second

// used is what was used in a slot.
type used struct {
	bytes float64 // sent in a second
	cores float64
	call  float64 // nanoseconds that one takes
}

// use looks at the process for a slot.
func use(c *collector.Collector, l *counter) used {
	time.Sleep(2 * time.Second) // who comes has the last minutes then
	start, sent, cpu := time.Now(), l.bytes.Load(), processor()
	time.Sleep(slot * 3 / 4)
	took := time.Since(start).Seconds()
	u := used{bytes: float64(l.bytes.Load()-sent) / took, cores: (processor() - cpu).Seconds() / took}
	u.call = call(c.Resource(bench.Names(1)[0]), slot/4)
	log.Printf("%.0f bytes a second, %.4f cores, %.1f ns a call", u.bytes, u.cores, u.call)
	return u
}

// processor is how much processor time the process has used.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		log.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// call is what Enter and Exit take: the median of many short runs, so that one in which others had the processor does not
// count.
func call(r *collector.Resource, length time.Duration) float64 {
	const times = 1000
	var runs []float64
	for end := bench.Now() + length; ; {
		start := bench.Now()
		for range times {
			e := r.Enter()
			e.Exit(nil)
		}
		now := bench.Now()
		runs = append(runs, float64(now-start)/times)
		if now > end {
			return median(runs)
		}
	}
}

// slots are those with viewers, or those without.
type slots []used

// median is that of something of these slots, each beside the other that was next to it.
func (s slots) median(others slots, of func(x, y used) float64) float64 {
	list := make([]float64, len(s))
	for i := range s {
		list[i] = of(s[i], others[i])
	}
	return median(list)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

var errFailed = errors.New("failed")

// load calls the resources, some more often than others. One of twenty calls fails.
func load(c *collector.Collector) {
	var all []*collector.Resource
	for _, name := range bench.Names(*resources) {
		all = append(all, c.Resource(name))
	}
	begin, done := time.Now(), 0
	for range time.Tick(10 * time.Millisecond) {
		// A tick may be late, or missing, when the machine is busy.
		for ; done < int(time.Since(begin).Seconds()*float64(*resources**calls)); done++ {
			r := all[max(rand.N(len(all)), rand.N(len(all)))]
			e := r.Enter()
			time.AfterFunc(rand.N(20*time.Millisecond), func() {
				var err error
				if rand.N(20) == 0 {
					err = errFailed
				}
				e.Exit(err)
			})
		}
	}
}

// counter counts what is sent.
type counter struct {
	net.Listener
	bytes atomic.Int64
}

func listen() (*counter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return &counter{Listener: l}, err
}

func (l *counter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &counted{c, l}, err
}

type counted struct {
	net.Conn
	listener *counter
}

func (c *counted) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.listener.bytes.Add(int64(n))
	return n, err
}
