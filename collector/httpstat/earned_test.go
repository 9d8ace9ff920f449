package httpstat

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newTestNames returns a Names with one earned name, GET /a, and a pointer to the time of its clock.
func newTestNames(t *testing.T) (n *Names, now *time.Time) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	n, err := NewNames(NamesOptions{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	n.Learn("GET /a", "192.0.2.1", 200)
	return n, &at
}

// inUse returns the number of names in use at the time now.
func inUse(n *Names, now time.Time) int {
	n.earned.nextExpiry = 0
	n.earned.expire(now.Unix())
	return n.earned.inUse
}

// A name is in use until exactly ten minutes after its last call.
func TestNamesAreInUseForTenMinutes(t *testing.T) {
	n, now := newTestNames(t)
	for _, step := range []struct {
		sleep time.Duration
		want  int
	}{{10 * time.Minute, 1}, {time.Second, 0}} {
		*now = now.Add(step.sleep)
		if got := inUse(n, *now); got != step.want {
			t.Errorf("after another %v: %d names in use, want %d", step.sleep, got, step.want)
		}
	}
}

// After the clock has gone back, a call does not shorten the time for which its name is in use: the recorded time of
// the last call never decreases.
func TestClockThatGoesBackKeepsNamesInUse(t *testing.T) {
	n, now := newTestNames(t)
	begin := *now
	*now = begin.Add(-5 * time.Minute)
	if _, s := n.Name("GET /a", "192.0.2.1"); s != Earned {
		t.Errorf("the name is %v", s)
	}
	*now = begin.Add(9 * time.Minute)
	if got := inUse(n, *now); got != 1 {
		t.Errorf("%d names in use nine minutes after the last call, want 1", got)
	}
}

// Load lowers a saved number of calls that is too high, and a saved time of the last call that is in the future.
// Otherwise the number of calls could overflow, and Names would keep the name forever.
func TestLoadBoundsSavedValues(t *testing.T) {
	n, now := newTestNames(t)
	path := filepath.Join(t.TempDir(), "names.json")
	list := `[{"name":"GET /b","calls":4294967295,"last":9999999999}]`
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Load(path); err != nil {
		t.Fatal(err)
	}
	x := n.earned.byName["GET /b"]
	if x.Calls > math.MaxUint32/2 || x.Last > now.Unix() {
		t.Errorf("loaded %+v at %d", x.savedName, now.Unix())
	}
}

// A successful call of GET /b can cause Names to use the name "GET /b" instead of "GET /*" from then on. The call
// itself still counts for "GET /*", so this name stays in use.
func TestPromotedCallUsesTheNameBefore(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n, err := NewNames(NamesOptions{MaxValues: 1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	promotions := 0
	for _, plain := range []string{"GET /a", "GET /b", "GET /a", "GET /b"} {
		for range 100 {
			now = now.Add(time.Second)
			changes := n.paths.changes
			name, _ := n.Observe(plain, "192.0.2.1", 200, nil)
			if n.paths.changes == changes {
				continue
			}
			promotions++
			if promotions > 1 && (name != "GET /*" || n.earned.byName[name].Last != now.Unix()) {
				t.Errorf("promotion %d: the call is named %q, last used %d s ago",
					promotions, name, now.Unix()-n.earned.byName[name].Last)
			}
			break
		}
	}
	if promotions != 4 {
		t.Errorf("%d promotions, want 4", promotions)
	}
}
