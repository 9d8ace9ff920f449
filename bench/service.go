package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Traffic is what the resources of a [Service] did: each made calls in every second. The minute that a page looks back on
// is full of records then, as that of a service in use is; with a single busy second a page costs less.
type Traffic struct {
	Resources, Seconds int
	Calls              int           // of a resource in a second
	History            time.Duration // that is kept; the default if zero
}

// One of so many calls fails, and in one of so many seconds one is blocked.
const (
	callsToFail   = 10
	blockedSecond = 10
)

var errFailed = errors.New("failed")

// Service is windowstat in a service whose resources were all in use in every second, until a moment ago. Its clock
// stands still, until it goes live.
type Service struct {
	Collector *collector.Collector

	traffic Traffic
	rts     []time.Duration
	at      atomic.Int64 // Unix nanoseconds
	live    atomic.Int64 // what to add to Now instead, if it is not 0
}

// NewService makes a service that had this traffic.
func NewService(t Traffic) (*Service, error) {
	s := &Service{traffic: t, rts: ResponseTimes(1000)}
	began := time.Unix(1_700_000_000, 0)
	s.at.Store(began.UnixNano())
	c, err := collector.New(collector.Options{MaxResources: t.Resources, Windows: node.Options{History: t.History}, Now: s.now})
	if err != nil {
		return nil, err
	}
	s.Collector = c
	names := Names(t.Resources)
	for second := range t.Seconds {
		for k := range t.Calls {
			at := began.Add(time.Duration(second)*time.Second + time.Duration(k+1)*time.Second/time.Duration(t.Calls+1))
			s.at.Store(at.UnixNano())
			for i, name := range names {
				_, e, err := c.Enter(context.Background(), name, collector.StartedAt(at.Add(-s.rt(i, second, k))))
				if err != nil {
					return nil, err
				}
				e.Exit(s.failed(i, second, k))
			}
		}
		if second%blockedSecond == 0 {
			for _, name := range names {
				c.Resource(name).Block("busy")
			}
		}
	}
	s.at.Store(began.Add(time.Duration(t.Seconds) * time.Second).UnixNano())
	return s, nil
}

// Live lets the clock go on from where it stands.
func (s *Service) Live() { s.live.Store(s.at.Load() - int64(Now())) }

func (s *Service) now() time.Time {
	if live := s.live.Load(); live != 0 {
		return time.Unix(0, live+int64(Now()))
	}
	return time.Unix(0, s.at.Load())
}

// Took calls f with every response time of resource i.
func (s *Service) Took(i int, f func(rt time.Duration)) {
	for second := range s.traffic.Seconds {
		for k := range s.traffic.Calls {
			f(s.rt(i, second, k))
		}
	}
}

// rt is how long the call number k of a second took: each resource has response times of its own.
func (s *Service) rt(i, second, k int) time.Duration {
	return s.rts[(7*i+second*s.traffic.Calls+k)%len(s.rts)]
}

func (s *Service) failed(i, second, k int) error {
	if (i+second*s.traffic.Calls+k)%callsToFail == 0 {
		return errFailed
	}
	return nil
}
