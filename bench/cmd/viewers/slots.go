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

// slot is the length of a turn with viewers, and of a turn without.
const slot = 15 * time.Second

// used holds the processors and the bytes that the process used and sent per second of a slot.
type used struct{ cores, bytes float64 }

// use measures the process for a slot.
func use(l *counter) used {
	time.Sleep(2 * time.Second) // by now new viewers have received the last minutes
	start, sent, cpu := time.Now(), l.bytes.Load(), processor()
	time.Sleep(slot)
	took := time.Since(start).Seconds()
	u := used{(processor() - cpu).Seconds() / took, float64(l.bytes.Load()-sent) / took}
	log.Printf("%.4f cores, %.0f bytes a second", u.cores, u.bytes)
	return u
}

// processor returns the processor time of the process.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		log.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// calls holds the times of Enter and Exit in short runs, for a collector with viewers and for a collector without.
type calls struct{ ours, other, ratio []float64 }

// measure runs the two collectors in turns that are short enough for the machine to be in the same state for both.
func (x *calls) measure(ours, other *collector.Resource, length time.Duration) {
	const times = 1000
	each := func(r *collector.Resource) float64 {
		start := bench.Now()
		for range times {
			e := r.Enter()
			e.Exit(nil)
		}
		return float64(bench.Now()-start) / times
	}
	for end := bench.Now() + length; bench.Now() < end; {
		a, b := each(ours), each(other)
		x.ours, x.other, x.ratio = append(x.ours, a), append(x.other, b), append(x.ratio, a/b)
	}
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
		// A tick may be delayed or missing if the machine is busy.
		for ; done < int(time.Since(begin).Seconds()*float64(*resources**rate)); done++ {
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

// counter counts the bytes that are sent.
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
