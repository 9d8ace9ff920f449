package collector_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// flyingModel is a naive oracle for limits on concurrency. It keeps a list of the calls in flight. To decide whether a
// limit is used up, it counts the calls in the list. Each random choice of the test takes the next byte of the field
// play.
type flyingModel struct {
	t      testing.TB
	c      *collector.Collector
	clock  *fakeClock
	limits []collector.Limit
	calls  []flyingCall
	play   []byte
	log    []string
}

// flyingCall is a call in flight. The field inOther is true if the resource Other records the call. The field matched
// is true if the name of the call matched the pattern of a limit when the call entered.
//
// A limit on Other must count all calls that Other records. A limit on the name of the call must count the call if
// inOther is false or matched is true. If inOther is true and matched is false, the limit may count the call, but need
// not.
type flyingCall struct {
	name, origin string
	inOther      bool
	matched      bool
	end          func(error)
}

var flyingSubjects = []collector.Limit{
	{Resource: "a", Grade: collector.Concurrency},
	{Resource: "a", Origin: "o", Grade: collector.Concurrency},
	{Resource: "*", Grade: collector.Concurrency},
	{Resource: "*", Origin: "o", Grade: collector.Concurrency},
	{Resource: "x/*", Grade: collector.Concurrency},
	{Resource: "x/1", Grade: collector.Concurrency},
	{Resource: "x/2", Origin: "p", Grade: collector.Concurrency},
	{Resource: collector.Other, Grade: collector.Concurrency},
	{Resource: collector.Other, Origin: "p", Grade: collector.Concurrency},
	{Resource: "x/*", Grade: collector.QPS},
	{Resource: "*", Grade: collector.QPS, Origin: "o"},
	{Resource: "b", Grade: collector.QPS, Strict: true},
}

func (m *flyingModel) next(n int) int {
	if len(m.play) == 0 {
		return 0
	}
	b := m.play[0]
	m.play = m.play[1:]
	return int(b) % n
}

func (m *flyingModel) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *flyingModel) fail(format string, args ...any) {
	m.t.Helper()
	for _, line := range m.log {
		m.t.Log(line)
	}
	m.t.Fatalf(format, args...)
}

// flying returns bounds of the number of calls in flight that the limit l counts when a call of this name and origin
// enters. The result least is the number of calls that l must count. The result most also includes the calls that l may
// count. If l does not apply to the entering call, ok is false.
func (m *flyingModel) flying(l collector.Limit, name, origin string, inOther bool) (least, most int64, ok bool) {
	// If whole is true, l is a limit on the resource Other, and counts all calls that Other records.
	whole := inOther && l.Resource == collector.Other
	pattern := l.Resource != name && l.Matches(name) || l.Resource == name && !inOther
	if l.Origin != "" && l.Origin != origin || !whole && !pattern {
		return 0, 0, false
	}
	for _, x := range m.calls {
		if l.Origin != "" && l.Origin != x.origin {
			continue
		}
		if whole && x.inOther || !whole && x.name == name {
			most++
			if whole || !x.inOther || x.matched {
				least++
			}
		}
	}
	return least, most, true
}

func (m *flyingModel) enter() {
	name := []string{"a", "b", "x/1", "x/2", "y", collector.Other}[m.next(6)]
	origin := []string{"", "o", "p"}[m.next(3)]
	how := m.next(8)
	inOther := m.c.Resource(name).Name() != name || name == collector.Other
	byHandle := how >= 5
	if byHandle {
		origin = ""
		if inOther {
			name = collector.Other // m.c.Resource(name) is Other, so the call has the name Other
		}
	}
	call := flyingCall{name: name, origin: origin, inOther: inOther}
	var by *collector.Limit
	for i, l := range m.limits {
		if l.Matches(name) && l.Resource != name {
			call.matched = true
		}
		if n, _, ok := m.flying(l, name, origin, inOther); ok && l.Grade == collector.Concurrency && n >= l.Count {
			by = &m.limits[i]
		}
	}
	var err error
	free := false
	if byHandle {
		r := m.c.Resource(name)
		e := new(collector.Entry)
		if free = how == 7; free {
			*e = r.Enter()
		} else {
			*e, err = r.TryEnter()
		}
		call.end = e.Exit
	} else {
		ctx := context.Background()
		opts := []collector.CallOption{collector.Origin(origin)}
		switch how {
		case 1:
			opts = append(opts, collector.Batch(3))
		case 2:
			opts, free = append(opts, collector.Admitted()), true
		case 3:
			opts, free = append(opts, collector.Passed()), true
		case 4:
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			ctx, opts = cancelled, append(opts, collector.Prioritized())
		}
		var e collector.Entry
		_, e, err = m.c.Enter(ctx, name, opts...)
		call.end = e.Exit
	}
	m.note("enter %s from %q, way %d, in Other %t: %v", name, origin, how, inOther, err)
	var blocked *collector.BlockedError
	switch {
	case err == nil && by != nil && !free:
		m.fail("the call entered, but the limit %+v is used up", *by)
	case err == nil:
		m.calls = append(m.calls, call)
	case free:
		m.fail("no limit may refuse the call, but a limit refused the call: %v", err)
	case !errors.As(err, &blocked):
		m.fail("%v", err)
	case blocked.Limit.Grade == collector.QPS:
		if by != nil {
			m.fail("the limit %+v is used up, but the error names a limit on QPS: %v", *by, err)
		}
	default:
		least, most, ok := m.flying(blocked.Limit, name, origin, inOther)
		if n := blocked.Reading; !ok || n < least || n > most || n < blocked.Limit.Count {
			m.fail("refused: %v; want %d to %d calls in flight, at least the limit; the limit applies to the call: %t",
				err, least, most, ok)
		}
	}
}

// exit ends a random call without an error, with an error, or with a panic in Options.Exception. It then ends the call
// a second time, which must have no effect.
func (m *flyingModel) exit() {
	if len(m.calls) == 0 {
		return
	}
	i := m.next(len(m.calls))
	x := m.calls[i]
	m.calls = append(m.calls[:i:i], m.calls[i+1:]...)
	m.note("exit %s from %q", x.name, x.origin)
	switch m.next(3) {
	case 0:
		x.end(nil)
	case 1:
		x.end(errBad)
	case 2:
		func() {
			defer func() { _ = recover() }()
			x.end(errPanics)
		}()
	}
	x.end(nil)
}

// errPanics is the error for which the function Options.Exception of this test panics.
var errPanics = errors.New("panics")

func (m *flyingModel) set() {
	m.limits = nil
	for range m.next(5) {
		l := flyingSubjects[m.next(len(flyingSubjects))]
		l.Count = int64(m.next(4))
		for _, x := range m.limits {
			if x.Resource == l.Resource && x.Origin == l.Origin && x.Grade == l.Grade {
				l.Resource = ""
			}
		}
		if l.Resource != "" {
			m.limits = append(m.limits, l)
		}
	}
	m.note("limits %+v", m.limits)
	if err := m.c.SetLimits(m.limits); err != nil {
		m.fail("%v", err)
	}
}

func playFlying(t testing.TB, play []byte) {
	f := new(fakeClock)
	c := newCollector(t, collector.Options{
		MaxResources: 6, RetireAfter: 3 * time.Minute, Windows: node.Options{History: time.Minute}, Now: f.now,
		Exception: func(err error) bool {
			if errors.Is(err, errPanics) {
				panic(err)
			}
			return true
		},
	})
	m := &flyingModel{t: t, c: c, clock: f, play: play}
	c.Resource("a")
	c.Resource("b")
	// Together with "a" and "b", four busy resources fill the table of resources. Other records the calls of further
	// names.
	for i := range 4 {
		c.Resource(fmt.Sprint("busy ", i)).Enter()
	}
	for len(m.play) > 0 {
		switch m.next(8) {
		case 0, 1, 2, 3:
			m.enter()
		case 4, 5:
			m.exit()
		case 6:
			m.set()
		case 7:
			d := []time.Duration{ms, 300 * ms, 5 * time.Second, 4 * time.Minute}[m.next(4)]
			m.note("the clock advances by %v", d)
			f.add(d)
			c.Seal()
		}
	}
	for len(m.calls) > 0 {
		m.exit()
	}
	// All calls of "a", "b", "x/1", "x/2" and "y" have ended. The limits allow one call in flight for each of these
	// names. If the limits count no ended call, the first call of a name enters. The limits must refuse the second call
	// of the name.
	limit(
		t,
		c,
		collector.Limit{Resource: "*", Grade: collector.Concurrency, Count: 1},
		collector.Limit{Resource: "*", Origin: "o", Grade: collector.Concurrency, Count: 1},
	)
	for _, name := range []string{"a", "b", "x/1", "x/2", "y"} {
		_, e, err := c.Enter(context.Background(), name, collector.Origin("o"))
		if _, _, err2 := c.Enter(context.Background(), name, collector.Origin("p")); err != nil || err2 == nil {
			m.fail("%s, after all calls ended: %v for the first call, want nil; %v for the second call, want an error",
				name, err, err2)
		}
		e.Exit(nil)
	}
}

func randomPlay(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 17))
	play := make([]byte, n)
	for i := range play {
		play[i] = byte(random.Uint32())
	}
	return play
}

// Limits on concurrency agree with a naive oracle. Calls enter in every way, exit and are cancelled, while limits
// change and resources retire.
func TestConcurrencyLimitsAgainstOracle(t *testing.T) {
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		playFlying(t, randomPlay(seed, 600))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzConcurrencyLimits(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomPlay(seed, 200))
	}
	f.Fuzz(func(t *testing.T, play []byte) {
		if len(play) < 4000 {
			playFlying(t, play)
		}
	})
}
