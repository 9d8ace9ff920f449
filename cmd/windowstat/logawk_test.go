package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// awkLog writes logs of two minutes: three files of shop, a file of another process of shop, and a file of Sentinel
// with lines of older versions and unescaped names.
func awkLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{
		"GET /api/v1/items",
		"GET /api/v2/items/7",
		"GET /api/v2/users",
		`say "a,b"`,
		"\x1b[2J\\q",
		"__total_inbound_traffic__",
	}
	for _, name := range []string{
		"shop-metrics.log.2026-01-02", "shop-metrics.log.2026-01-02.1",
		"shop-metrics.log.2026-01-02.2", "shop-metrics.log.pid7.2026-01-02",
	} {
		begin, end := 1767323030, 1767323150
		switch filepath.Ext(name) {
		case ".1":
			begin = 1767323070
		case ".2":
			begin = 1767323110
		}
		if strings.HasPrefix(name, "shop-metrics.log.2026") {
			end = begin + 40
		}
		var b strings.Builder
		for second := begin; second < end; second++ {
			for i, resource := range names {
				if i < len(names)-1 && r.IntN(3) == 0 {
					continue
				}
				fmt.Fprintf(&b, "%d000|%s|%s|%d|%d|%d|%d|%d", second,
					time.Unix(int64(second), 0).UTC().Format(time.DateTime), resource, r.IntN(50), r.IntN(4)*r.IntN(2),
					r.IntN(50), r.IntN(3), r.IntN(200))
				if r.IntN(9) > 0 {
					fmt.Fprintf(&b, "|%d|%d|0", r.IntN(2), r.IntN(30))
				}
				b.WriteByte('\n')
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs a command in a directory.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip(err)
	}
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// The lines equal the lines that awk selects in the files, byte for byte.
func TestLogLinesBesideAwk(t *testing.T) {
	dir := awkLog(t)
	// Awk does not merge processes.
	if err := os.Remove(filepath.Join(dir, "shop-metrics.log.pid7.2026-01-02")); err != nil {
		t.Fatal(err)
	}
	const files = " shop-metrics.log.2026-01-02 shop-metrics.log.2026-01-02.1 shop-metrics.log.2026-01-02.2"
	for args, command := range map[string]string{
		"--from=2026-01-02":                           "cat" + files,
		"--from=2026-01-02  --zone=Asia/Kolkata":      "cat" + files, // also dates
		"--from=2026-01-02  --where=block>0":          `awk -F'|' '$5>0'` + files,
		"--from=2026-01-02  --where=rt_avg >= 0.1s":   `awk -F'|' '$8>=100'` + files,
		"--from=2026-01-02  --where=rt_avg>99999us":   `awk -F'|' '$8>99.999'` + files,
		"--from=2026-01-02  --where=in_flight_max=7":  `awk -F'|' '$10==7'` + files,
		"--from=2026-01-02  --where=complete!=0":      `awk -F'|' '$6!=0'` + files,
		"--from=2026-01-02  --where=occupied_pass<=0": `awk -F'|' '$9<=0'` + files,
		"--from=2026-01-02  --where=pass<5  --where=exception>1  --where=block=0": `awk -F'|' '$4<5 && $7>1 && ` +
			`$5==0'` + files,
		"--from=2026-01-02  --follow=false  --summary=false": "cat" + files,
		"--from=2026-01-02 03:04:40  --to=+31s": `awk -F'|' '$1>=1767323080000 && ` +
			`$1<=1767323111000'` + files,
		"--from=1767323080  --to=1767323111000": `awk -F'|' '$1>=1767323080000 && ` +
			`$1<=1767323111000'` + files,
		"--from=2026-01-02  --resource=GET /api/*/items*": `awk -F'|' '$3 ~ /^GET ` +
			`\/api\/.*\/items/'` + files,
		"--from=2026-01-02  --resource=*user*  --resource=*v1*": `awk -F'|' '$3 ~ /user|v1/'` + files,
		"--from=2026-01-02  --resource=*  --where=block>1":      `awk -F'|' '$5>1'` + files,
		"--from=2026-01-02  --to=2026-01-02  --resource=*v2*s*": `awk -F'|' '$3 ~ /v2.*s/'` + files,
	} {
		if !strings.Contains(args, "--to") {
			args += "  --to=2026-01-02"
		}
		status, got, stderr := loggedRun(t, "--format=sentinel  --dir="+dir+"  "+args)
		if want := shell(t, dir, command); status != 0 || got != want || want == "" {
			t.Errorf("%s: status %d, %d lines, want %d\n%.400s\nwant\n%.400s\n%s", args, status,
				strings.Count(got, "\n"), strings.Count(want, "\n"), got, want, stderr)
		}
	}
}

// added is a row of sums.
type added struct {
	TS                                     int64
	Resource                               string
	Pass, Block, Complete, Exception, Peak int64
	Occupied                               int64     `json:"occupied_pass"`
	InFlight                               int64     `json:"in_flight_max"`
	RT                                     float64   `json:"rt_avg_seconds"`
	PeakTime                               time.Time `json:"peak_time"`
}

// The sums over both processes equal the sums of awk, with the first of the busiest seconds and the average of all
// calls.
func TestLogSumsBesideAwk(t *testing.T) {
	dir := awkLog(t)
	const program = `awk -F'|' -v CONVFMT=%%.0f -v step=%d -v by=%d -v begin=%d '%s {
	k = (step ? $1 - $1 %% step : begin) "|" $3
	p[k] += $4; b[k] += $5; c[k] += $6; e[k] += $7; o[k] += $9; w[k] += $8 * $6
	if ($10 + 0 > f[k] + 0) f[k] = $10
	s = k "|" $1; now[s] += $by
} END {
	for (s in now) {
		split(s, x, "|"); k = x[1] "|" x[2]
		if (now[s] > 0 && (now[s] > peak[k] || now[s] == peak[k] && x[3] + 0 < at[k])) { peak[k] = now[s]; at[k] ` +
		`= x[3] + 0 }
	}
	for (k in p) printf "%%s|%%d|%%d|%%d|%%d|%%d|%%d|%%.3f|%%d|%%.0f\n", k, p[k], b[k], c[k], e[k], o[k], f[k], ` +
		`c[k] ? w[k] / c[k] : 0, peak[k], at[k]
}' shop*`
	for _, tc := range []struct {
		args      string
		step, by  int
		condition string
		then      string
	}{
		{"--step=1m", 60_000, 4, "", ""},
		{"--step=7s", 0, 4, "", ""}, // see below
		{"--step=1h  --by=exception", 3_600_000, 7, "", ""},
		{"--step=10s  --by=block  --where=block>0", 10_000, 5, "$5 > 0", ""},
		{"--top=3  --by=exception", 0, 7, `$3 !~ /^__/`, " | sort -t'|' -k6,6nr -k2,2 | head -n 3"},
		{"--top=2", 0, 4, `$3 !~ /^__/`, " | sort -t'|' -k3,3nr -k2,2 | head -n 2"},
		{"--top=100", 0, 4, `$3 !~ /^__/`, " | sort -t'|' -k3,3nr -k2,2"},
		{
			"--top=2  --step=20s  --by=block", 20_000, 5, `$3 !~ /^__/`,
			" | sort -t'|' -k1,1 -k4,4nr -k2,2 | awk -F'|' 'n[$1]++ < 2'",
		},
		{"--summary", 0, 4, "", ""},
		{"--summary  --by=exception  --top=3", 0, 7, `$3 !~ /^__/`, " | sort -t'|' -k6,6nr -k2,2 | head -n 3"},
		{"--top=100  --by=complete  --resource=GET*", 0, 6, `$3 ~ /^GET/`, " | sort -t'|' -k5,5nr -k2,2"},
	} {
		from := int64(1767312000)
		command := fmt.Sprintf(program, tc.step, tc.by, from*1000, tc.condition) + tc.then
		if tc.args == "--step=7s" { // steps begin at midnight, and 7 s do not divide the seconds since 1970
			command = strings.Replace(fmt.Sprintf(program, 7000, tc.by, from*1000, ""), "$1 - $1 % step",
				"$1 - ($1 - begin) % step", 1)
		}
		want := strings.Split(strings.TrimSpace(shell(t, dir, command)), "\n")
		_, out, stderr := loggedRun(t, "--format=json  --from=2026-01-02  --to=2026-01-02  --dir="+dir+"  "+tc.args)
		var got []string
		for line := range strings.Lines(out) {
			var a added
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			got = append(
				got,
				fmt.Sprintf("%d|%s|%d|%d|%d|%d|%d|%d|%.3f|%d|%d", a.TS, a.Resource, a.Pass, a.Block, a.Complete,
					a.Exception, a.Occupied, a.InFlight, a.RT*1000, a.Peak, max(a.PeakTime.UnixMilli(), 0)),
			)
		}
		if !strings.Contains(tc.args, "--top") { // another test checks the order
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s\n%s", tc.args, strings.Join(got, "\n"), strings.Join(want, "\n"), stderr)
		}
	}
}
