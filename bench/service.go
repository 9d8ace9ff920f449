package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Traffic describes the load of a [Service]: each resource is called in every second. The minute that a page reads is
// then full of records, as in a service in use. With a single busy second, a page would be cheaper.
type Traffic struct {
	Resources, Seconds int
	Calls              int           // per leaf and second
	Origins            int           // callers of each resource, one leaf each; zero means one leaf without an origin
	History            time.Duration // length of the history; zero means the default
}

// The share of failed calls, and of seconds with a blocked call: one of the given number.
const (
	callsToFail   = 10
	blockedSecond = 10
)

var errFailed = errors.New("failed")

// Service is windowstat in a service whose resources were all in use in every second until now. Its clock does not
// advance until [Service.Live] starts it.
type Service struct {
	Collector *collector.Collector

	traffic Traffic
	names   []string
	origins []collector.CallOption
	rts     []time.Duration
	second  int          // position of the traffic
	at      atomic.Int64 // Unix nanoseconds
	live    atomic.Int64 // if not 0, the clock is Now plus this offset
}

// NewService returns a service after this traffic.
func NewService(t Traffic) (*Service, error) {
	s := &Service{traffic: t, names: Names(t.Resources), rts: ResponseTimes(1000)}
	s.at.Store(time.Unix(1_700_000_000, 0).UnixNano())
	for i := range t.Origins {
		s.origins = append(s.origins, collector.Origin(fmt.Sprint("origin-", i)))
	}
	c, err := collector.New(collector.Options{
		MaxResources: t.Resources, MaxOrigins: max(t.Origins, 1), MaxMemory: 1 << 40,
		Windows: node.Options{History: t.History}, Now: s.now,
	})
	if err != nil {
		return nil, err
	}
	s.Collector = c
	return s, s.Go(t.Seconds)
}

// Go continues the same traffic for the given number of seconds.
func (s *Service) Go(seconds int) error {
	for range seconds {
		began := time.Unix(0, s.at.Load())
		for k := range s.traffic.Calls {
			at := began.Add(time.Duration(k+1) * time.Second / time.Duration(s.traffic.Calls+1))
			s.at.Store(at.UnixNano())
			if err := s.call(at, k); err != nil {
				return err
			}
		}
		if s.second%blockedSecond == 0 {
			for _, name := range s.names {
				s.Collector.Resource(name).Block("busy")
			}
		}
		s.second++
		s.at.Store(began.Add(time.Second).UnixNano())
	}
	return nil
}

// call makes call number k of the second, once for each leaf.
func (s *Service) call(at time.Time, k int) error {
	var options [2]collector.CallOption
	for i, name := range s.names {
		for origin := range max(len(s.origins), 1) {
			rt := i + origin // distinct for each origin
			options := append(options[:0], collector.StartedAt(at.Add(-s.rt(rt, s.second, k))))
			if len(s.origins) > 0 {
				options = append(options, s.origins[origin])
			}
			_, e, err := s.Collector.Enter(context.Background(), name, options...)
			if err != nil {
				return err
			}
			e.Exit(s.failed(rt, s.second, k))
		}
	}
	return nil
}

// Call calls each leaf once, at the current time.
func (s *Service) Call() error { return s.call(s.now(), 0) }

// Skip advances the clock without calls.
func (s *Service) Skip(d time.Duration) { s.at.Add(int64(d)) }

// Live starts the clock at its current time. Stop stops it at its current time.
func (s *Service) Live() { s.live.Store(s.at.Load() - int64(Now())) }

// Stop stops the clock that [Service.Live] started.
func (s *Service) Stop() {
	s.at.Store(s.now().UnixNano())
	s.live.Store(0)
}

func (s *Service) now() time.Time {
	if live := s.live.Load(); live != 0 {
		return time.Unix(0, live+int64(Now()))
	}
	return time.Unix(0, s.at.Load())
}

// metric returns a function that reads a self-metric of windowstat. The metric must have no labels or only one series.
func (s *Service) metric(name string) func() (v float64) {
	all := s.Collector.Metrics()
	m := &all[slices.IndexFunc(all, func(m collector.Metric) bool { return m.Name == name })]
	return func() (v float64) {
		m.Each(func(x float64, _ ...string) { v = x })
		return v
	}
}

// Took calls f with every response time of resource i.
func (s *Service) Took(i int, f func(rt time.Duration)) {
	for second := range s.traffic.Seconds {
		for k := range s.traffic.Calls {
			f(s.rt(i, second, k))
		}
	}
}

// rt returns the duration of call number k of a second. Each resource has different response times.
func (s *Service) rt(i, second, k int) time.Duration {
	return s.rts[(7*i+second*s.traffic.Calls+k)%len(s.rts)]
}

func (s *Service) failed(i, second, k int) error {
	if (i+second*s.traffic.Calls+k)%callsToFail == 0 {
		return errFailed
	}
	return nil
}
