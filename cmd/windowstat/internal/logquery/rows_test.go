package logquery

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// hostile has names that an untrusted client may choose.
var hostile = []string{
	"\x1b[2J\x1b]0;owned\x07", "\u009b31m", "\x7f\x00\r\n\t", "\u202egnp.exe", "a|b\\c\\x1b",
	`=cmd|' /C calc'!A0`, "+1", "-1", "@SUM(A1)",
	"a,\"b\"\nc", "\xff\xfe", "</script>\u2028", "'", "",
}

func hostileRows() (rows []metriclog.Row) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range hostile {
		rows = append(rows, metriclog.Row{
			Start: at.Add(time.Duration(i) * time.Second), App: "shop", PID: i % 2 * 77, Resource: name,
			Pass: int64(i), Block: 1, Success: 1_000_000, Exception: 3, OccupiedPass: 4,
			RT: 1500 * time.Millisecond, Concurrency: 12_345_678_901,
		})
	}
	return rows
}

// sentinelLine returns a row as a line of the log. The log escapes characters that end a field or a line.
func sentinelLine(r *metriclog.Row) []byte {
	name := strings.ReplaceAll(r.Resource, `\`, `\\`)
	for c := range byte(0x80) {
		if c < ' ' || c == '|' || c == 0x7f {
			name = strings.ReplaceAll(name, string(c), fmt.Sprintf(`\x%02x`, c))
		}
	}
	return fmt.Appendf(nil, "%d|%s|%s|%d|%d|%d|%d|%d|%d|%d|0", r.Start.UnixMilli(), r.Start.Format(time.DateTime), name,
		r.Pass, r.Block, r.Success, r.Exception, r.RT.Milliseconds(), r.OccupiedPass, r.Concurrency)
}

// printed returns rows in a format.
func printed(t *testing.T, format string, several bool, rows []metriclog.Row) string {
	t.Helper()
	var b strings.Builder
	p := newLines(&b, formats[format], layout{zone: time.FixedZone("here", 3600), several: several})
	err := p.write(func(yield func(*row) bool) {
		for i := range rows {
			if !yield(&row{Row: &rows[i], line: sentinelLine(&rows[i])}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC)
	rows := []metriclog.Row{
		{
			Start:        at,
			App:          "shop",
			Resource:     "GET /",
			Pass:         10,
			Block:        2,
			Success:      9,
			Exception:    1,
			OccupiedPass: 3,
			RT:           7 * time.Millisecond,
			Concurrency:  4,
		},
		{Start: at.Add(time.Second), App: "till", PID: 12, Resource: `a "b"`, Pass: 1_234_567},
	}
	for format, want := range map[string]string{
		"table": `time                         pass   block  complete  exception  occupied  in flight   rt ms  ` +
			`log           resource
2026-01-03 00:59:59+01:00      10       2         9          1         3          4       7  shop          GET /
2026-01-03 01:00:00+01:00  1234567       0         0          0         0          0       0  till.pid12    a "b"
`,
		"json": `{"ts":1767398399000,"time":"2026-01-03T00:59:59+01:00","app":"shop","resource":"GET /","pass":10,` +
			`"block":2,"complete":9,"exception":1,"occupied_pass":3,"in_flight_max":4,"rt_avg_seconds":0.007}
{"ts":1767398400000,"time":"2026-01-03T01:00:00+01:00","app":"till","pid":12,"resource":"a \"b\"","pass":1234567,` +
			`"block":0,"complete":0,"exception":0,"occupied_pass":0,"in_flight_max":0,"rt_avg_seconds":0}
`,
		"csv": `time,app,pid,resource,pass,block,complete,exception,occupied_pass,in_flight_max,rt_avg_seconds
2026-01-03T00:59:59+01:00,shop,,GET /,10,2,9,1,3,4,0.007
2026-01-03T01:00:00+01:00,till,12,"a ""b""",1234567,0,0,0,0,0,0
`,
		"sentinel": `1767398399000|2026-01-02 23:59:59|GET /|10|2|9|1|7|3|4|0
1767398400000|2026-01-03 00:00:00|a "b"|1234567|0|0|0|0|0|0|0
`,
	} {
		if got := printed(t, format, true, rows); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", format, got, want)
		}
	}
	if got := printed(t, "table", false, rows); strings.Contains(got, "till") {
		t.Errorf("one log:\n%s", got)
	}
}

// A terminal obeys U+009B. Lines of the log stay as they are for other programs, and are escaped on a terminal.
func TestLinesOfTheLogOnATerminal(t *testing.T) {
	x := &row{line: []byte("1|2026-01-02 23:59:59|a\u009b31m\u202eb|1")}
	const escaped = `1|2026-01-02 23:59:59|a\u009b31m\u202eb|1`
	for screen, want := range map[bool]string{false: string(x.line), true: escaped} {
		if got := string(formats["sentinel"].line(nil, "", x, &layout{screen: screen})); got != want {
			t.Errorf("on a terminal %t: %q, want %q", screen, got, want)
		}
	}
}

// The names in JSON are unchanged for programs, and contain nothing that a terminal obeys.
func TestJSONHasNoUnprintableCharacters(t *testing.T) {
	var b strings.Builder
	in := []string{"a\u009b31m\u202e", "\x7f", "é 世界", "\U000e0001", "\x1b\n"}
	if err := WriteJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.ReplaceAll(b.String(), "\n", "") {
		if !strconv.IsPrint(r) {
			t.Errorf("%q in %q", r, b.String())
		}
	}
	var out []string
	if err := json.Unmarshal([]byte(b.String()), &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("%q, %v, want %q", out, err, in)
	}
}

// For any name, each format has one line per row, contains the name, and has no control characters for a terminal.
func TestHostileNames(t *testing.T) {
	rows := hostileRows()
	for _, format := range []string{"table", "json", "csv", "sentinel"} {
		got := printed(t, format, true, rows)
		for _, r := range strings.ReplaceAll(got, "\n", "") {
			if r < ' ' || format != "sentinel" && (r >= 0x7f && r < 0xa0 || r == '\u202e') {
				t.Errorf("%s: %q in\n%q", format, r, got)
				break
			}
		}
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if format == "table" || format == "csv" {
			lines = lines[1:]
		}
		if len(lines) != len(rows) {
			t.Fatalf("%s: %d lines of %d rows:\n%s", format, len(lines), len(rows), got)
		}
		for i, line := range lines {
			name := ""
			switch format {
			case "json":
				var row struct{ Resource string }
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				name = row.Resource
				if want := strings.ToValidUTF8(rows[i].Resource, "\uFFFD"); name != want &&
					rows[i].Resource != "\xff\xfe" {
					t.Errorf("json: %q, want %q", name, want)
				}
				continue
			case "sentinel":
				row, err := metriclog.Parse(line)
				if err != nil {
					t.Error(err)
				}
				if row.Resource != rows[i].Resource || row.Pass != rows[i].Pass || row.RT != rows[i].RT ||
					row.Concurrency != rows[i].Concurrency ||
					!row.Start.Equal(rows[i].Start) {
					t.Errorf("sentinel: %+v, want %+v", row, rows[i])
				}
				continue
			case "csv":
				fields, err := csv.NewReader(strings.NewReader(line)).Read()
				if err != nil || len(fields) != 4+len(columns) {
					t.Fatalf("%s: %v", line, err)
				}
				name = fields[3]
				if name != "" && strings.ContainsAny(name[:1], "=+-@\t\r") {
					t.Errorf("csv: a formula: %s", name)
				}
				name = strings.TrimPrefix(name, "'")
				if rows[i].Resource == "'" {
					name = "'"
				}
			case "table":
				name = line[strings.Index(line, "  shop")+len("  shop.pid77    "):] // after the column of the log
			}
			if want := Visible(rows[i].Resource); name != want {
				t.Errorf("%s: %q, want %q", format, name, want)
			}
		}
	}
	seen := map[string]string{}
	for _, name := range append(hostile, `\x1b`, "\x1b", `a"b`, `a\"b`) {
		if other, ok := seen[Visible(name)]; ok && other != name {
			t.Errorf("%q and %q look the same", name, other)
		}
		seen[Visible(name)] = name
	}
}

// Sums also have the value and time of the busiest second.
func TestFormatsOfSums(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 0, 0, time.UTC)
	rows := []row{
		{
			Row:  &metriclog.Row{Start: at, App: "shop", Resource: "a", Pass: 10, RT: 7500 * time.Microsecond},
			sums: &sums{peak: 9, peakAt: at.Add(30 * time.Second)},
		},
		{Row: &metriclog.Row{Start: at, App: "shop", Resource: "b"}, sums: &sums{}},
	}
	for format, want := range map[string]string{
		"table": `time                         pass   block  complete  exception  occupied  in flight   rt ms    ` +
			`peak  at                         resource
2026-01-02 23:59:00+00:00      10       0         0          0         0          0       7       9  2026-01-02 ` +
			`23:59:30+00:00  a
2026-01-02 23:59:00+00:00       0       0         0          0         0          0       0       0  -            ` +
			`              b
`,
		"json": `{"ts":1767398340000,"time":"2026-01-02T23:59:00Z","app":"shop","resource":"a","pass":10,` +
			`"block":0,"complete":0,"exception":0,"occupied_pass":0,"in_flight_max":0,"rt_avg_seconds":0.0075,` +
			`"peak":9,"peak_time":"2026-01-02T23:59:30Z"}
{"ts":1767398340000,"time":"2026-01-02T23:59:00Z","app":"shop","resource":"b","pass":0,"block":0,"complete":0,` +
			`"exception":0,"occupied_pass":0,"in_flight_max":0,"rt_avg_seconds":0,"peak":0}
`,
		"csv": `time,app,pid,resource,pass,block,complete,exception,occupied_pass,in_flight_max,rt_avg_seconds,` +
			`peak,peak_time
2026-01-02T23:59:00Z,shop,,a,10,0,0,0,0,0,0.0075,9,2026-01-02T23:59:30Z
2026-01-02T23:59:00Z,shop,,b,0,0,0,0,0,0,0,0,
`,
	} {
		var b strings.Builder
		p := newLines(&b, formats[format], layout{zone: time.UTC, sums: true})
		err := p.write(func(yield func(*row) bool) { _ = yield(&rows[0]) && yield(&rows[1]) })
		if err != nil || b.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, b.String(), want)
		}
	}
}
