package bench

import (
	"sync"
	"time"
)

// SecondMap counts calls in a map by second, and drops old seconds when a new one begins. INCR and EXPIRE on a key
// named after the second do the same in Redis. One lock guards everything.
//
// Errors and costs: it reads a burst across the boundary of a second as two bursts of half the size; a reading is the
// last complete second, so it is up to two seconds old; each turn allocates; and the map is the most expensive of all
// for a resource.
type SecondMap struct {
	mu       sync.Mutex
	keep     int64
	seconds  map[int64]*Cell
	inFlight int64
}

// NewSecondMap returns a map of the last 60 seconds.
func NewSecondMap() *SecondMap {
	return &SecondMap{keep: 60, seconds: map[int64]*Cell{}}
}

// at returns the cell of now's second. mu must be held.
func (m *SecondMap) at(now time.Duration) *Cell {
	second := int64(now / time.Second)
	c := m.seconds[second]
	if c == nil {
		c = new(Cell)
		m.seconds[second] = c
		for s := range m.seconds {
			if s <= second-m.keep {
				delete(m.seconds, s)
			}
		}
	}
	return c
}

// Enter counts a call that begins at the reading now.
func (m *SecondMap) Enter(now time.Duration) {
	m.mu.Lock()
	m.at(now).Pass++
	m.inFlight++
	m.mu.Unlock()
}

// Exit counts the end of a call at the reading now.
func (m *SecondMap) Exit(now, rt time.Duration) {
	m.mu.Lock()
	m.at(now).add(Cell{Complete: 1, RTSum: rt})
	m.inFlight--
	m.mu.Unlock()
}

// Sum returns the counts of the last complete second before the reading now.
func (m *SecondMap) Sum(now time.Duration) Cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.seconds[int64(now/time.Second)-1]; c != nil {
		return *c
	}
	return Cell{}
}

// Each passes the stored seconds to take, by index, in no particular order.
func (m *SecondMap) Each(take func(index int64, c Cell)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, c := range m.seconds {
		take(s, *c)
	}
}

func newSecondMaps(names []string) (Recorder, error) {
	list := make([]*SecondMap, len(names))
	for i := range list {
		list[i] = NewSecondMap()
	}
	next := make([]time.Duration, len(names))
	return Recorder{
		Call: func(i int) {
			start := Now()
			list[i].Enter(start)
			end := Now()
			list[i].Exit(end, end-start)
		},
		// Each call falls into a separate second, so a few calls fill the map.
		Took: func(i int, rt time.Duration) {
			list[i].Enter(next[i])
			list[i].Exit(next[i], rt)
			next[i] += time.Second
		},
	}, nil
}
