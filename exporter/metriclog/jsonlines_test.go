package metriclog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

const todayJSON = "shop-metrics.json.2026-01-02"

func TestJSONLine(t *testing.T) {
	r := newRig(t, start, metriclog.Options{JSON: true})
	_, e, err := r.Enter(t.Context(), "GET <a>", collector.Inbound(), collector.Origin("mobile"), collector.Entrance("http"))
	if err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(8 * ms)
	e.Exit(errors.New("x"))
	r.Block(t.Context(), "GET <a>", "limit", collector.Origin("web"), collector.Entrance("http"))
	r.Resource("GET <a>").Enter()
	r.now = r.now.Add(time.Second)
	r.flush(t)
	want := `{"ts":1767323045000,"time":"2026-01-02T03:04:05Z","resource":"GET <a>","pass":2,"block":1,"complete":1,"exception":1,` +
		`"occupied_pass":0,"in_flight":1,"in_flight_avg":0.899996416,"in_flight_max":1,"pass_peak":2,` +
		`"rt":{"sum_seconds":0.008,"min_seconds":0.008,"max_seconds":0.008,"p50_seconds":0.008,"p90_seconds":0.008,"p99_seconds":0.008,"p999_seconds":0.008},` +
		`"origins":{"":{"pass":1,"block":0,"complete":0,"exception":0},"mobile":{"pass":1,"block":0,"complete":1,"exception":1},"web":{"pass":0,"block":1,"complete":0,"exception":0}},` +
		`"entrances":{"_default":{"pass":1,"block":0,"complete":0,"exception":0},"http":{"pass":1,"block":1,"complete":1,"exception":1}}}` + "\n"
	got, _, _ := strings.Cut(r.read(t, todayJSON), "\n")
	if got+"\n" != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// jsonRow is what the Sentinel rows have, too.
type jsonRow struct {
	TS           int64  `json:"ts"`
	Resource     string `json:"resource"`
	Pass         int64  `json:"pass"`
	Block        int64  `json:"block"`
	Complete     int64  `json:"complete"`
	Exception    int64  `json:"exception"`
	OccupiedPass int64  `json:"occupied_pass"`
	InFlightMax  int64  `json:"in_flight_max"`
	RT           *struct {
		Sum float64 `json:"sum_seconds"`
	} `json:"rt"`
	Origins, Entrances map[string]struct{ Pass, Block, Complete, Exception int64 }
}

// Whatever the names, each line is JSON, row by row the same as the line of Sentinel's log, and the parts of a resource
// add up to it.
func TestJSONLinesAgreeWithTheLog(t *testing.T) {
	r := newRig(t, start, metriclog.Options{JSON: true, MaxFileSize: 5000, MaxFiles: 1000})
	rng := rand.New(rand.NewPCG(1, 7))
	hostile := []string{`"`, `\`, "a\nb", "\x00", "\u2028", "</script>", "\xff\xfe", `"resource":"` + collector.InboundTotal + `"`, "|", "π"}
	for range 30 {
		for range rng.IntN(40) {
			_, e, err := r.Enter(t.Context(), hostile[rng.IntN(len(hostile))], collector.Origin(hostile[rng.IntN(len(hostile))]), collector.Entrance(hostile[rng.IntN(len(hostile))]), collector.Inbound())
			if err != nil {
				t.Fatal(err)
			}
			r.now = r.now.Add(time.Duration(rng.IntN(5)) * ms)
			e.Exit(nil)
		}
		r.now = r.now.Truncate(time.Second).Add(time.Second)
		r.flush(t)
	}
	var rows []metriclog.Row
	found, err := metriclog.Searcher{Dir: r.dir}.Search(metriclog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for row := range found.All() {
		rows = append(rows, row)
	}
	for n := 0; ; n++ {
		name := todayJSON
		if n > 0 {
			name += fmt.Sprint(".", n)
		}
		if _, err := os.Stat(filepath.Join(r.dir, name)); err != nil {
			break
		}
		for line := range strings.Lines(r.read(t, name)) {
			if !utf8.ValidString(line) || !strings.HasSuffix(line, "}\n") {
				t.Errorf("%q", line)
			}
			var got jsonRow
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if len(rows) == 0 {
				t.Fatalf("too many lines: %s", line)
			}
			row := rows[0]
			rows = rows[1:]
			if got.TS != row.Start.UnixMilli() || got.Resource != row.Resource || got.Pass != row.Pass || got.Block != row.Block ||
				got.Complete != row.Success || got.Exception != row.Exception || got.OccupiedPass != row.OccupiedPass || got.InFlightMax != row.Concurrency {
				t.Errorf("%+v beside %+v", got, row)
			}
			if got.Complete > 0 && time.Duration(got.RT.Sum/float64(got.Complete)*1e9+1).Truncate(ms) != row.RT || got.Complete == 0 && got.RT != nil {
				t.Errorf("response times %+v beside %v", got.RT, row.RT)
			}
			for _, parts := range []map[string]struct{ Pass, Block, Complete, Exception int64 }{got.Origins, got.Entrances} {
				var pass, complete int64
				for _, part := range parts {
					pass += part.Pass
					complete += part.Complete
				}
				if row.Resource != collector.InboundTotal && (pass != got.Pass || complete != got.Complete) {
					t.Errorf("%s: the parts have %d passes and %d completions", line, pass, complete)
				}
			}
		}
	}
	if len(rows) != 0 {
		t.Errorf("%d rows have no line", len(rows))
	}
}

// naiveJSON is the line of a resource, of which encoding/json writes each name and number; empty for an idle one.
func naiveJSON(t *testing.T, name string, r *collector.Resource, v *node.View, index int64) string {
	t.Helper()
	text := func(x any) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(x); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(b.String())
	}
	m, ok := v.Second(index)
	if !ok || m.Idle() {
		return ""
	}
	fields := []string{
		`"ts":` + text(m.Start.UnixMilli()), `"time":` + text(m.Start.Format(time.RFC3339)), `"resource":` + text(name),
	}
	var times []string
	for _, c := range node.Columns() {
		switch n := *c.At(&m); c.Kind {
		case node.Time:
			times = append(times, text(strings.TrimPrefix(c.Name, "rt_")+"_seconds")+":"+metriclog.SecondsOf(time.Duration(n)))
		case node.CallTime:
			fields = append(fields, text(c.Name)+":"+metriclog.SecondsOf(time.Duration(n)))
		default:
			fields = append(fields, text(c.Name)+":"+text(n))
		}
	}
	var h node.Histogram
	if v.Histogram(index, index+1, &h) {
		for _, q := range []string{"50", "90", "99", "999"} {
			share, _ := strconv.ParseFloat("0."+q, 64)
			times = append(times, fmt.Sprintf(`"p%s_seconds":%s`, q, metriclog.SecondsOf(h.Quantile(share))))
		}
	}
	if m.Complete > 0 {
		fields = append(fields, `"rt":{`+strings.Join(times, ",")+"}")
	}
	if r != nil {
		fields = append(fields, naiveParts("origins", maps.Collect(r.Origins()), index, text)...)
		fields = append(fields, naiveParts("entrances", maps.Collect(r.Entrances()), index, text)...)
	}
	return "{" + strings.Join(fields, ",") + "}\n"
}

func naiveParts(key string, views map[string]collector.View, index int64, text func(any) string) []string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if m, ok := views[name].Node().Second(index); ok && !m.Idle() {
			parts = append(parts, fmt.Sprintf(`%s:{"pass":%d,"block":%d,"complete":%d,"exception":%d}`, text(name), m.Pass, m.Block, m.Complete, m.Exception))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{text(key) + ":{" + strings.Join(parts, ",") + "}"}
}

// Lines are, byte for byte, as a naive program writes them, also those of seconds that are written minutes after.
func TestJSONLinesAreThoseOfANaiveProgram(t *testing.T) {
	r := newRig(t, start, metriclog.Options{JSON: true})
	random := rand.New(rand.NewPCG(2, 8))
	names := []string{"a", "GET /π", "\x01\u2028<&>\"\\|", "web", "\xff"}
	from := r.Seal().Open
	for i := range 400 {
		for range random.IntN(20) {
			o := []collector.Option{collector.Origin(names[random.IntN(5)]), collector.Entrance(names[random.IntN(5)])}
			if random.IntN(2) == 0 {
				o = append(o, collector.Inbound())
			}
			name := names[random.IntN(5)]
			if random.IntN(9) == 0 {
				r.Block(t.Context(), name, "limit", o...)
				continue
			}
			_, e, err := r.Enter(t.Context(), name, o...)
			if err != nil {
				t.Fatal(err)
			}
			if r.now = r.now.Add(time.Duration(random.Int64N(1 << random.IntN(28)))); random.IntN(50) > 0 {
				e.Exit(nil)
			}
		}
		r.now = r.now.Truncate(time.Second).Add(time.Second * time.Duration(1+random.IntN(2)))
		if i%10 == 0 && i < 300 {
			r.flush(t)
		}
	}
	to := r.Seal().Open
	var want strings.Builder
	before := strings.Count(r.read(t, todayJSON), "\n")
	r.flush(t)
	for index := from; index < to; index++ {
		for _, x := range r.Seal().Resources {
			want.WriteString(naiveJSON(t, x.Name(), x, x.View().Node(), index))
		}
		want.WriteString(naiveJSON(t, collector.InboundTotal, nil, r.Inbound().Node(), index))
	}
	got := strings.SplitAfter(r.read(t, todayJSON), "\n")[before:]
	all := strings.SplitAfter(want.String(), "\n")
	for i := range got {
		if n := len(all) - len(got) + i; got[i] != all[n] {
			t.Fatalf("got\n%s\nwant\n%s", got[i], all[n])
		}
	}
	if len(got) < 200 {
		t.Errorf("%d lines", len(got))
	}
}

// A second is in both logs or in none.
func TestBothLogsOrNone(t *testing.T) {
	r := newRig(t, start, metriclog.Options{JSON: true})
	for _, way := range []string{todayJSON, today} {
		r.calls("a", 1, ms)
		r.now = r.now.Add(999 * ms)
		r.flush(t)
		before, beforeJSON := r.read(t, today), r.read(t, todayJSON)
		// A directory in the place of the index.
		path := filepath.Join(r.dir, way+".idx")
		if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o755)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.calls("a", 1, ms)
			r.now = r.now.Add(999 * ms)
			if err := r.Flush(); err == nil {
				t.Errorf("%s: no error", way)
			}
			if r.read(t, today) != before || r.read(t, todayJSON) != beforeJSON {
				t.Errorf("%s failed, and a log has\n%s%s", way, r.read(t, today), r.read(t, todayJSON))
			}
		}
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatal(err)
		}
		r.flush(t)
	}
	if rows := r.checkIndexes(t); rows != 8 {
		t.Errorf("%d rows", rows)
	}
	if n := strings.Count(r.read(t, todayJSON), "\n"); n != 16 || r.self()["metriclog_lost_seconds_total"] != 0 {
		t.Errorf("%d lines of JSON, %v", n, r.self())
	}
}
