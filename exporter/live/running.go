package live

import (
	"time"

	"github.com/windowstat/windowstat/collector"
)

// running is a call that has been in flight for long.
type running struct {
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
	Entrance string `json:"entrance"`
	Trace    string `json:"trace,omitempty"`
	Since    int64  `json:"since"` // milliseconds of Unix time
}

const (
	mostRunning = 10
	longRunning = time.Second // younger calls are no trouble, and others in each second
)

// runningOf describes the oldest calls in flight.
func (f *feed) runningOf(oldest []collector.Running) []running {
	list, now := []running{}, f.wall()
	for _, x := range oldest {
		if x.Age >= longRunning {
			list = append(list, running{x.Resource, x.Origin, x.Entrance, x.TraceID, now - x.Age.Milliseconds()})
		}
	}
	return list
}
