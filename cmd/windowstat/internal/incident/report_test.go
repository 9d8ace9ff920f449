package incident

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/verify"
)

// A report of an hour with fifty busy resources has at most two megabytes, and omits nothing.
func TestSizeOfAReport(t *testing.T) {
	busy := &service{
		app:   "shop",
		usual: map[string]second{},
		noise: func(r *rand.Rand, _ int, _ string, x *second) { x.rtMs *= .5 + r.Float64() },
	}
	for i := range 50 {
		name := fmt.Sprintf("GET /api/v1/resource-%d", i)
		busy.resources = append(busy.resources, name)
		busy.usual[name] = second{float64(10 + 6*i), float64(i % 7), float64(i % 5), float64(5 + 7*i), float64(i % 11)}
	}
	dir := t.TempDir()
	busy.write(t, dir, 3600, 1)
	s := read(t, 3600, dir)
	var b bytes.Buffer
	r := Report{Title: "An hour", Answers: &Answers{Onsets: s.Onsets(0)}}
	if err := r.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	t.Log(b.Len())
	if b.Len() > 2<<20 || len(r.Answers.Notes) > 0 {
		t.Errorf("%d bytes; %q", b.Len(), r.Answers.Notes)
	}
}

// Names from untrusted clients appear as text in the file. They end no script and no element.
func TestNamesInAReport(t *testing.T) {
	const evil, lines = `</script><script>alert(1)</script><img src=x onerror=alert(1)>`, "a\u2028b\u2029c\u202e"
	x := &service{
		app:       "shop",
		resources: []string{evil, lines},
		usual:     map[string]second{evil: {20, 0, 0, 5, 0}, lines: {20, 0, 0, 5, 0}},
	}
	x.change = func(at int, _ string, x *second) {
		if at > 20 {
			x.block = 40
		}
	}
	dir := t.TempDir()
	x.write(t, dir, 60, 1)
	s := read(t, 60, dir)
	r := Report{
		Title: "</title><script>", Limits: []collector.Limit{{Resource: "*", Count: 10}},
		Answers: &Answers{
			Onsets: s.Onsets(0),
			Trials: s.Backtest(collector.Limit{Resource: "*", Count: 10}),
			Notes:  []string{"<script>"},
		},
		Alerts: []verify.Alert{{Name: "<script>", Labels: `a="<script>"`, From: epoch, To: epoch.Add(time.Minute)}},
	}
	var b bytes.Buffer
	if err := r.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<script>"); n != 6 { // the scripts of the page itself
		t.Errorf("%d scripts", n)
	}
	if len(r.Answers.Onsets) != 2 || strings.Contains(page, "<img") ||
		strings.ContainsAny(page, "\u2028\u2029\u202e") ||
		!strings.Contains(page, "&lt;/script&gt;&lt;script&gt;alert") {
		t.Error(page[strings.Index(page, "<main>"):])
	}
	withoutScripts := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(page, "")
	if outside := regexp.MustCompile(`(?:src|href)="[^d]|https?://`).FindString(withoutScripts); outside != "" {
		t.Errorf("the page loads %s", outside)
	}
}
