package live_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// shop is a service of several resources under load.
type shop struct {
	t     *testing.T
	page  *live.Page
	stats *collector.Collector
	now   *time.Time
	hung  []*collector.Entry
}

// second lets a second pass with 30 searches, which query the database, 20 payments of which two fail, and in every
// tenth second a burst of 90 sales, of which a third are refused. While the database hangs, no search ends.
func (x *shop) second(i int, hangs bool) {
	for n := range 30 {
		ctx, search, _ := x.stats.Enter(x.t.Context(), "search", collector.Inbound(), collector.Entrance("http"))
		_, query, _ := x.stats.Enter(ctx, "db", collector.Outbound())
		*x.now = x.now.Add(time.Millisecond)
		if hangs {
			x.hung = append(x.hung, &search, &query)
		} else {
			query.Exit(nil)
			search.Exit(nil)
		}
		if n < 20 {
			pay := x.stats.Resource("pay").Enter()
			*x.now = x.now.Add(time.Duration(5+n%3) * time.Millisecond)
			var err error
			if n < 2 {
				err = errors.New("declined")
			}
			pay.Exit(err)
		}
		if sale := x.stats.Resource("sale"); i%10 == 0 {
			for range 2 {
				e := sale.Enter()
				e.Exit(nil)
			}
			sale.Block("")
		}
	}
	*x.now = x.now.Truncate(time.Second).Add(time.Second)
}

// trouble returns the sentence about the trouble, and the rows of the table with their troubles.
func (x *shop) trouble(parameters ...string) string {
	m := poll(x.t, x.page, "", parameters...)
	text := ""
	if m.Alarm.Before != "" {
		text = m.Alarm.Before + time.Unix(m.Alarm.Since, 0).UTC().Format(time.TimeOnly) + m.Alarm.After + "\n"
	}
	for _, r := range m.Table.Rows {
		if r.Trouble != "" {
			text += r.Name + ": " + r.Trouble + "\n"
		}
		if (r.Trouble != "") != (r.Kind > 0) {
			x.t.Errorf("%s: kind %d of %q", r.Name, r.Kind, r.Trouble)
		}
	}
	return text
}

// Ten minutes of a service in which payments always fail and sales are always refused have no trouble. When the
// database hangs, the page says so after two seconds: it names the cause, its beginning and its caller, for as long as
// the hang lasts. Afterwards the page is calm again, and the range of the hang still shows it.
func TestHangIsTrouble(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	x := &shop{t: t, page: p, stats: c, now: now}
	for i := range 200 {
		x.second(i, false)
		if got := x.trouble(); got != "" {
			t.Fatalf("after %d calm seconds: %s", i, got)
		}
	}
	began := *now
	for i := range 700 {
		x.second(i, true)
		if i != 1 && i != 39 && i != 699 {
			if i%30 == 0 {
				if got := x.trouble(); (got == "") != (i == 0) { // the page is open
					t.Fatalf("after %d seconds of the hang: %q", i, got)
				}
			}
			continue
		}
		n := strings.ReplaceAll(fmt.Sprintf("%6d", 30*(i+1)), " ", "")
		if len(n) > 3 {
			n = n[:len(n)-3] + "," + n[len(n)-3:]
		}
		age := fmt.Sprint(i+1, " s")
		if i > 120 {
			age = fmt.Sprint((i+1)/60, " min")
		}
		words := fmt.Sprintf("hangs: %s in flight, oldest %s\n", n, age)
		want := "db hangs since " + began.Format(time.TimeOnly) + "; search waits for it.\n" +
			"db: " + words + "search: " + words
		if got := x.trouble(); got != want {
			t.Errorf("after %d seconds of the hang:\n%swant\n%s", i+1, got, want)
		}
	}
	end := *now
	for _, e := range x.hung {
		e.Exit(nil)
	}
	for i := range 40 {
		x.second(i, false)
	}
	if got := x.trouble(); got != "" {
		t.Errorf("afterwards: %s", got)
	}
	got := x.trouble(fmt.Sprintf("range=%d-%d", end.Unix()-60, end.Unix()))
	if !strings.HasPrefix(got, "db: hangs: 21,000 in flight, oldest 10 s\nsearch: hangs: 21,000") {
		t.Errorf("the range of the hang: %q", got)
	}
}

// The table begins with trouble, the worst first: traffic that stopped, failures, refusals, slow calls. The others
// follow by their passes.
func TestTroubleFirst(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	names := []string{"busy", "failing", "refused", "slow", "stopped"}
	second := func(bad bool) {
		for n := range 20 {
			for _, name := range append(names, "busy") {
				switch bad := bad; {
				case bad && name == "stopped":
				case bad && name == "refused" && n%2 == 0:
					c.Resource(name).Block("")
				default:
					e := c.Resource(name).Enter()
					if *now = now.Add(100 * time.Microsecond); name == "slow" && bad {
						*now = now.Add(20 * time.Millisecond)
					}
					var err error
					if bad && name == "failing" {
						err = errors.New("no")
					}
					e.Exit(err)
				}
			}
		}
		*now = now.Truncate(time.Second).Add(time.Second)
	}
	order := func() (list []string) {
		for _, r := range poll(t, p, "").Table.Rows {
			list = append(list, strings.TrimSuffix(r.Name+" "+r.Trouble, " "))
		}
		return list
	}
	for range 300 {
		second(false)
		order()
	}
	for range 10 {
		second(true)
	}
	want := "[stopped stopped: 0, usually 20 failing 200 of 200 failed refused 100 of 200 refused " +
		"slow slow: average × 201.0 busy]"
	if got := fmt.Sprint(order()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 10 {
		second(false)
	}
	if got := fmt.Sprint(order()); got != "[busy failing refused slow stopped]" {
		t.Errorf("ten seconds later: %s", got)
	}
}

// The sentence about a resource that refuses calls names its limits.
func TestRefusalNamesLimit(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	x := &shop{t: t, page: p, stats: c, now: now}
	call := func() {
		for range 30 {
			if ctx, e, err := c.Enter(t.Context(), "GET /"); err == nil && ctx != nil {
				e.Exit(nil)
			}
		}
		*now = now.Add(time.Second)
	}
	for range 60 {
		call()
		x.trouble()
	}
	limits := []collector.Limit{
		{Resource: "GET /", Count: 5}, {Resource: "GET /", Grade: collector.Concurrency, Count: 9},
	}
	if err := c.SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	began := now.Format(time.TimeOnly)
	for range 3 {
		call()
	}
	want := "GET / refuses calls since " + began +
		"; its limit is 5 calls per second and 9 calls in flight.\nGET /: 75 of 300 refused\n"
	if got := x.trouble(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
