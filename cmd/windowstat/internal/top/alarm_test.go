package top

import (
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/live"
)

// Trouble of a service appears above the table of an ordinary terminal: the sentence of the live page, then each
// resource with its trouble. A past second, and a target that does not respond, show no current trouble.
func TestTroubleOnScreen(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	u := busy("a", "b\x1b[2J", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
	found := alarm{Before: "b\x1b[2J hangs since ", Since: 1033, After: "; a waits for it."}
	for _, name := range []string{"b\x1b[2J", "a", "c", "d", "e", "f", "g"} {
		found.List = append(found.List, troubled{name, "hangs: 1,000 in flight, oldest 17 s"})
	}
	u.targets[0].state.detail.Alarm = found
	const sentence = `b\x1b[2J hangs since 00:17:13; a waits for it.`
	got := drawn(t, u, 80, 24)
	want := []string{
		sentence,
		`  b\x1b[2J  hangs: 1,000 in flight, oldest 17 s`,
		"  a  hangs: 1,000 in flight, oldest 17 s",
	}
	for i, line := range want {
		if got[1+i] != line {
			t.Errorf("line %d is %q, want %q", 1+i, got[1+i], line)
		}
	}
	if got[7] != "  and 2 more" || !strings.HasPrefix(got[8], "RESOURCE") || !strings.HasPrefix(got[20], "a") {
		t.Errorf("the table is not below the trouble:\n%s", strings.Join(got, "\n"))
	}
	inTrouble := func(name string) bool { return u.troubled(&line{key: key{name: name}, scope: u.targets}) }
	if !inTrouble("a") || inTrouble("l") || inTrouble(inbound) {
		t.Error("the wrong lines are marked")
	}
	hidden := func() bool { return !strings.Contains(strings.Join(drawn(t, u, 80, 24), "\n"), "hangs") }
	if u.past = 1050; !hidden() || inTrouble("a") {
		t.Error("a past second shows current trouble")
	}
	u.past = 0
	u.targets[0].away = time.Unix(1070, 0)
	if !hidden() {
		t.Error("a target that does not respond shows trouble")
	}
}

// With several targets, the sentence names the target.
func TestTroubleOfTarget(t *testing.T) {
	u, a, b := fleet(t)
	a.state.detail.Alarm = alarm{Before: "x fails since ", After: "."}
	b.state.detail.Alarm = alarm{}
	if got := strings.Join(drawn(t, u, 80, 24), "\n"); !strings.Contains(got, a.name+": x fails since ") {
		t.Errorf("the screen is\n%s", got)
	}
}

// The trouble comes from the live page, with or without a selected resource. A single reading as text does not request
// it.
func TestTroubleIsRequested(t *testing.T) {
	s := newService(t)
	page, err := live.New(s.Collector, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/live/", page)
	for range 12 {
		s.Block(t.Context(), "a", "")
	}
	s.end()
	x := newReader(t, s.serve(t))
	if got := x.read(t.Context(), inbound); got.detail.Alarm.Before != "" {
		t.Errorf("without a request: %+v", got.detail)
	}
	x.alarms = true
	for _, selected := range []string{inbound, "a"} {
		got := x.read(t.Context(), selected).detail
		if got.Alarm.Before != "a refuses calls since " || !got.Alarm.names("a") ||
			got.Alarm.List[0].Words != "12 of 12 refused" {
			t.Errorf("%q: %+v", selected, got)
		}
	}
}
