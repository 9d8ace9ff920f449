package trouble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// service generates the seconds of a resource.
type service struct {
	rand   *rand.Rand
	rate   func(t int) float64 // calls per second
	rt     func(*rand.Rand) time.Duration
	fails  float64 // share of the calls
	blocks float64 // share of the calls
}

// second returns the second t.
func (x *service) second(t int) (s Second) {
	n := x.poisson(x.rate(t))
	for range n {
		if x.rand.Float64() < x.blocks {
			s.Block++
			continue
		}
		rt := x.rt(x.rand)
		s.Pass, s.Complete, s.RTSum, s.RTMax = s.Pass+1, s.Complete+1, s.RTSum+rt, max(s.RTMax, rt)
		if x.rand.Float64() < x.fails {
			s.Exception++
		}
	}
	return s
}

// poisson draws a number of calls.
func (x *service) poisson(mean float64) (n int) {
	for sum := x.rand.ExpFloat64(); sum < mean; sum += x.rand.ExpFloat64() {
		n++
	}
	return n
}

// windows returns the windows of usual seconds, of which the open one follows the last.
func windows(seconds []Second) (list [][]Second) {
	n := int64(len(seconds))
	Windows(func(from, to int64) {
		if n+from >= 0 {
			list = append(list, seconds[n+from:n+to])
		}
	})
	return list
}

func lognormal(median time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return min(time.Duration(float64(median)*math.Exp(r.NormFloat64())), time.Second)
	}
}

func constant(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// services are healthy services of different character.
func services(seed uint64) map[string]*service {
	swing := func(rate float64) func(int) float64 { // by 35 % within half an hour
		return func(t int) float64 { return rate * (1 + .35*math.Sin(2*math.Pi*float64(t)/1800)) }
	}
	every := func(period, length int, rate float64) func(int) float64 {
		return func(t int) float64 {
			if t%period < length {
				return rate
			}
			return 0
		}
	}
	r := func() *rand.Rand { seed++; return rand.New(rand.NewPCG(seed, 1)) }
	fast := func(r *rand.Rand) time.Duration { return 2*time.Millisecond + time.Duration(r.Int64N(2e6)) }
	return map[string]*service{
		"busy, swinging":              {r(), swing(200), fast, 0, 0},
		"long tail":                   {r(), swing(65), lognormal(8 * time.Millisecond), 0.001, 0},
		"failing by one in ten":       {r(), swing(20), lognormal(20 * time.Millisecond), .1, 0},
		"rare, failing by one in ten": {r(), constant(1), lognormal(20 * time.Millisecond), .1, 0},
		"one call a second":           {r(), constant(1), lognormal(50 * time.Millisecond), 0, 0},
		"one call a minute":           {r(), constant(1. / 60), lognormal(50 * time.Millisecond), 0, 0},
		"refusing by one in five":     {r(), swing(40), fast, 0, .2},
		"a burst in ten seconds":      {r(), every(10, 1, 250), fast, 0, .2},
		"a burst in a minute":         {r(), every(60, 5, 100), fast, 0, 0},
		"half a minute on, half off":  {r(), every(60, 30, 100), fast, 0, 0},
		"idle":                        {r(), constant(0), fast, 0, 0},
	}
}

// An hour of healthy, varying load has no trouble in any second.
func TestCalm(t *testing.T) {
	for seed := range uint64(20) {
		for name, x := range services(1000 * seed) {
			var seconds []Second
			var usual Usual
			for at := range 3600 {
				seconds = append(seconds, x.second(at))
				if at < 40 { // no window of usual seconds yet
					continue
				}
				if at%60 == 40 {
					usual = NewUsual(windows(seconds))
				}
				if found := Find(&usual, Current{Seconds: seconds[at+1-Window:]}); len(found) > 0 {
					t.Errorf("%s: at %d s %s; %+v", name, at, Words(found), usual)
					break
				}
			}
		}
	}
}

// Each kind of trouble of a busy service is found within a few seconds, and ends with its cause.
func TestTroubleIsFound(t *testing.T) {
	const begin = 300
	for _, tc := range []struct {
		name   string
		change func(s *Second, since int) Current // changes a second of the trouble
		want   string
		within int
	}{
		{"hang", func(s *Second, since int) Current {
			*s = Second{Pass: s.Pass, InFlight: int64(50 * since)}
			return Current{InFlight: s.InFlight, Oldest: time.Duration(since) * time.Second}
		}, "hangs: 1,000 in flight, oldest 20 s", 2},
		{"hang without ages", func(s *Second, since int) Current {
			*s = Second{InFlight: 1000}
			return Current{InFlight: 1000}
		}, "hangs: 1,000 in flight, oldest 10 s", 2},
		{"some calls hang", func(s *Second, since int) Current {
			s.InFlight = 20
			return Current{InFlight: 20, Oldest: time.Duration(since) * time.Second}
		}, "hangs: 20 in flight, oldest 20 s", 10},
		{"stop", func(s *Second, _ int) Current { *s = Second{}; return Current{} }, "stopped: 0, usually 50", 2},
		{"failures", func(s *Second, _ int) Current {
			s.Exception = s.Complete / 2
			return Current{}
		}, "failed", 2},
		{"refusals", func(s *Second, _ int) Current {
			s.Block, s.Pass = s.Pass/2, s.Pass/2
			return Current{}
		}, "refused", 2},
		{"slow", func(s *Second, _ int) Current {
			s.RTSum *= 3
			return Current{}
		}, "slow: average × ", 7},
		{"slow calls", func(s *Second, _ int) Current {
			s.RTMax *= 9
			return Current{}
		}, "slow: slowest calls × ", 7},
	} {
		x := &service{rand.New(rand.NewPCG(1, 2)), constant(50), lognormal(10 * time.Millisecond), 0.002, 0}
		var seconds []Second
		for at := range begin {
			seconds = append(seconds, x.second(at))
		}
		usual := NewUsual(windows(seconds))
		first := 0
		for since := 1; since <= 20; since++ {
			s := x.second(begin + since)
			c := tc.change(&s, since)
			seconds = append(seconds, s)
			c.Seconds = seconds[len(seconds)-Window:]
			found := Find(&usual, c)
			if len(found) > 0 && first == 0 {
				first = since
			}
			if len(found) > 0 && first == since {
				if n := found[0].Since(&usual, seconds); n < since-1 || n > since+1 {
					t.Errorf("%s: after %d s it lasts since %d s", tc.name, since, n)
				}
			}
			if since == 20 && len(found) == 1 {
				if n := found[0].Since(&usual, seconds); n < since-1 || n > since+1 {
					t.Errorf("%s: after %d s it lasts since %d s", tc.name, since, n)
				}
			}
			if since == 20 && (len(found) != 1 || !strings.Contains(Words(found), tc.want)) {
				t.Errorf("%s: %q, want %q", tc.name, Words(found), tc.want)
			}
		}
		if first == 0 || first > tc.within {
			t.Errorf("%s: found after %d s, want %d", tc.name, first, tc.within)
		}
		for at := range Window {
			seconds = append(seconds, x.second(begin+20+at))
		}
		if found := Find(&usual, Current{Seconds: seconds[len(seconds)-Window:]}); len(found) > 0 {
			t.Errorf("%s: afterwards %s", tc.name, Words(found))
		}
	}
}

// One slow second is no trouble, neither of a busy resource nor of one that is only called in bursts. Two slow seconds
// of a busy resource are trouble.
func TestSlowSecond(t *testing.T) {
	for _, tc := range []struct {
		name string
		slow []int // slow seconds of the window
		want string
	}{
		{"busy, swinging", []int{9}, ""},
		{"busy, swinging", []int{4, 9}, "slow: average × "},
		{"a burst in ten seconds", []int{0}, ""},
	} {
		x := services(1)[tc.name]
		var seconds []Second
		for at := range 600 {
			seconds = append(seconds, x.second(at))
		}
		usual := NewUsual(windows(seconds))
		c := Current{Seconds: seconds[len(seconds)-Window:]}
		for _, i := range tc.slow {
			c.Seconds[i].RTSum, c.Seconds[i].RTMax = 50*c.Seconds[i].RTSum, 50*c.Seconds[i].RTMax
		}
		if got := Words(Find(&usual, c)); (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s, slow seconds %v: %q, want %q", tc.name, tc.slow, got, tc.want)
		}
	}
}

// A resource that fails and is called four times as often as usual has this multiple, unless it is usually idle in some
// seconds.
func TestRetries(t *testing.T) {
	for name, want := range map[string]bool{"busy, swinging": true, "a burst in ten seconds": false, "idle": false} {
		x := services(1)[name]
		var seconds []Second
		for at := range 600 {
			seconds = append(seconds, x.second(at))
		}
		usual := NewUsual(windows(seconds))
		rate := int64(usual.passes.rate)
		c := Current{Seconds: seconds[len(seconds)-Window:]}
		if got := retries(&usual, &c); got != 0 {
			t.Errorf("%s: the multiple of usual calls is %v", name, got)
		}
		for i := range c.Seconds[Window-2:] {
			s := &c.Seconds[Window-2+i]
			s.Pass, s.Complete, s.Exception = 4*rate+9, 4*rate+9, 4*rate+9
		}
		found := Find(&usual, c)
		if len(found) == 0 || found[0].Kind != Failing {
			t.Fatalf("%s: %v", name, found)
		}
		if got := found[0].Times; want != (got > 3.9) || !want && got != 0 {
			t.Errorf("%s: the failing calls are %v times the usual ones", name, got)
		}
	}
}

// A resource whose calls hang and are slow only hangs.
func TestHangIsNotSlow(t *testing.T) {
	x := services(1)["busy, swinging"]
	var seconds []Second
	for at := range 600 {
		seconds = append(seconds, x.second(at))
	}
	usual := NewUsual(windows(seconds))
	c := Current{Seconds: seconds[len(seconds)-Window:], InFlight: 9, Oldest: time.Minute}
	for i := range c.Seconds {
		c.Seconds[i].RTSum *= 9
	}
	if got := Words(Find(&usual, c)); got != "hangs: 9 in flight, oldest 60 s" {
		t.Errorf("%q", got)
	}
}

// A viewer that arrives some minutes after the beginning still sees the trouble: the usual numbers are medians, and a
// silence that continues is not usual.
func TestLateViewer(t *testing.T) {
	x := &service{rand.New(rand.NewPCG(1, 2)), constant(50), lognormal(10 * time.Millisecond), 0, 0}
	for late := 60; late <= 240; late += 60 {
		var hung, failing []Second
		for at := range 600 {
			s := x.second(at)
			bad := s
			if at >= 600-late {
				s, bad.Exception = Second{InFlight: 100}, bad.Complete
			}
			hung, failing = append(hung, s), append(failing, bad)
		}
		for _, seconds := range [][]Second{hung, failing} {
			usual := NewUsual(windows(seconds))
			c := Current{Seconds: seconds[len(seconds)-Window:], InFlight: seconds[599].InFlight}
			if len(Find(&usual, c)) != 1 {
				t.Errorf("after %d s there is no trouble: %+v", late, usual)
			}
		}
	}
}

// While the usual numbers are unknown, only a resource of which half of the calls fail or are refused is in trouble.
func TestUnknown(t *testing.T) {
	for s, want := range map[Second]string{
		{InFlight: 9}:                          "",
		{Pass: 1, Complete: 1, Exception: 1}:   "10 of 10 failed",
		{Pass: 2, Complete: 2, Exception: 1}:   "10 of 20 failed",
		{Pass: 3, Complete: 3, Exception: 1}:   "",
		{Pass: 1, Block: 1}:                    "10 of 20 refused",
		{Pass: 1, Complete: 1, RTSum: 1 << 40}: "",
	} {
		c := Current{InFlight: s.InFlight, Oldest: time.Hour}
		for range Window {
			c.Seconds = append(c.Seconds, s)
		}
		if got := Words(Find(new(Usual), c)); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// The worst resource comes first, and a cause before its effects. The sentence names both.
func TestSentence(t *testing.T) {
	at := time.Date(2026, 1, 2, 1, 33, 5, 0, time.UTC)
	resource := func(name string, t Trouble, callers ...string) Resource {
		return Resource{Name: name, Troubles: []Trouble{t}, Since: at, Callers: callers}
	}
	hangs := func(n int64) Trouble { return Trouble{Kind: Hanging, Calls: n, severity: float64(n)} }
	failing := Trouble{Kind: Failing, Calls: 52, Of: 60, severity: 52}
	for _, tc := range []struct {
		list []Resource
		want string
	}{
		{nil, ""},
		{[]Resource{resource("a", failing)}, "a fails since 01:33:05."},
		{
			[]Resource{
				resource("POST /payments", failing), resource("GET /products/{id}", hangs(700)),
				resource("GET /", Trouble{Kind: Stopped, Usual: 60, severity: 60}), resource("GET /search", hangs(300)),
				resource("db: products", hangs(1000), "GET /products/{id}", "GET /search"),
			},
			"db: products hangs since 01:33:05; GET /products/{id} and GET /search wait for it; " +
				"2 others are in trouble.",
		},
		{
			// The cause comes first, even if more of its callers wait.
			[]Resource{resource("a", hangs(700)), resource("b", hangs(30), "a")},
			"b hangs since 01:33:05; a waits for it.",
		},
		{
			[]Resource{
				resource("db", failing, "a", "b", "c", "d"), resource("a", failing), resource("b", failing),
				resource("c", failing), resource("d", failing),
			},
			"db fails since 01:33:05; a, b and 2 others fail as well.",
		},
		{[]Resource{resource("a", failing, "a")}, "a fails since 01:33:05."},
		{
			[]Resource{{
				Name: "a", Troubles: []Trouble{{Kind: Refusing}}, Since: at,
				Limits: "37 calls per second and 9 calls in flight",
			}},
			"a refuses calls since 01:33:05; its limit is 37 calls per second and 9 calls in flight.",
		},
		{
			[]Resource{resource("a", failing), resource("b", Trouble{Kind: Slow})},
			"a fails since 01:33:05; 1 other is slow.",
		},
		{
			[]Resource{
				resource("a", Trouble{Kind: Failing, Times: 3.9}, "b"), resource("b", Trouble{Kind: Failing}),
				resource("c", Trouble{Kind: Slow}), resource("d", Trouble{Kind: Slow}),
			},
			"a fails since 01:33:05; it is called 4 times as often as usual; b fails as well; 2 others are slow.",
		},
		{
			// The other resource that hangs is not between the callers.
			[]Resource{resource("a", hangs(9), "c"), resource("b", hangs(8)), resource("c", hangs(7))},
			"a hangs since 01:33:05; c waits for it; 1 other hangs.",
		},
	} {
		Rank(tc.list)
		before, after := Sentence(tc.list)
		got := before + after
		if len(tc.list) > 0 {
			got = before + tc.list[0].Since.Format(time.TimeOnly) + after
		}
		if got != tc.want {
			t.Errorf("%s\nwant %s", got, tc.want)
		}
	}
}

// The words name the numbers with their usual values.
func TestWords(t *testing.T) {
	for want, x := range map[string]Trouble{
		"hangs: 1,234,567 in flight, oldest 3 h": {Kind: Hanging, Calls: 1234567, Age: 3 * time.Hour},
		"hangs: 1 in flight, oldest 59 min":      {Kind: Hanging, Calls: 1, Age: 59*time.Minute + 59*time.Second},
		"stopped: 0, usually 215":                {Kind: Stopped, Usual: 214.6},
		"stopped: 0, usually 0.5":                {Kind: Stopped, Usual: 0.5},
		"slow: average × 2.2":                    {Kind: Slow, Times: 2.2},
		"24 of 1,000 refused":                    {Kind: Refusing, Calls: 24, Of: 1000},
		"":                                       {},
	} {
		if got := fmt.Sprint(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
