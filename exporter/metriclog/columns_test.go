package metriclog

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// The metrics that the table says are logged are those that come back from a row as they were, and no others.
func TestLoggedMetricsSurviveTheLog(t *testing.T) {
	var m node.MetricNode
	for i, c := range node.Columns() {
		*c.At(&m) = int64(1_000_003*i + 7)
	}
	m.Start = time.Unix(1_767_323_045, 0).UTC()
	row, err := Parse(string(appendLine(nil, appendHead(nil, m.Start), "a", &m)))
	if err != nil {
		t.Fatal(err)
	}
	back := row.Record()
	for _, metric := range table.Seconds() {
		if metric.Value == nil {
			continue
		}
		want, _ := metric.Value(&m)
		got, _ := metric.Value(&back)
		if (got == want) != metric.Logged {
			t.Errorf("%s: %v came back as %v; logged is %v", metric.Name, want, got, metric.Logged)
		}
	}
}

// Times are written in seconds with all their decimals, and none at the end that are 0.
func TestTimesOfJSONLines(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	times := []time.Duration{0, 1, 999, 1000, 1001, 999_999_999, 1e9, 1_100_000_000, 1e15 - 1, 1e15, 1e15 + 1, math.MaxInt64}
	for range 200_000 {
		d := time.Duration(random.Int64() >> random.IntN(63))
		times = append(times, d, d.Truncate(time.Millisecond), d.Truncate(time.Second)+1)
	}
	for _, d := range times {
		if got := appendSeconds([]byte("x"), d); string(got) != "x"+SecondsOf(d) {
			t.Fatalf("%d: %s, want %s", d, got, SecondsOf(d))
		}
	}
}

// jsonOf is a string as encoding/json writes it.
func jsonOf(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func FuzzStringOfJSONLines(f *testing.F) {
	for c := range rune(0x250) {
		f.Add("a" + string(c) + string([]byte{byte(c)}) + "z")
	}
	for _, s := range []string{"", "\u2027\u2028\u2029\u202a", "\xe2\x80", "\xe2\x80\xa8", "\ufffd", "😀", "\xed\xa0\x80", "<a>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(appendString(nil, s)), jsonOf(t, s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	})
}
