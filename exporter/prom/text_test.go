package prom_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

// busy returns a service with names that must be escaped and numbers of all kinds.
func busy(t testing.TB) *collector.Collector {
	c, now := service(t, collector.Options{
		Windows:        node.Options{Bounds: []time.Duration{time.Microsecond, 5 * ms, time.Second, 2 * time.Second}},
		ExceptionClass: func(err error) string { return err.Error() },
	})
	for i, name := range []string{
		"plain", "quo\"te", "back\\slash", "new\nline", "ünïcode", "{a=\"b\"} 1", "",
		"#", " ",
	} {
		for n := range i + 1 {
			_, e, err := c.Enter(
				t.Context(),
				name,
				collector.Origin(name),
				collector.Entrance("in "+name),
				collector.Batch(int64(1+n*77)),
			)
			if err != nil {
				t.Fatal(err)
			}
			*now = now.Add(time.Duration(n*n*n) * ms / 3)
			var failed error
			if n%2 == 1 {
				failed = errors.New("class \"" + name + "\"")
			}
			e.ExitTrace(
				failed,
				[...]collector.Code{
					{}, collector.HTTPStatus(404), collector.GRPCCode(5), collector.HTTPStatus(600),
				}[n%4],
				name,
			)
		}
		c.Block(t.Context(), name, "because\n\""+name, collector.Origin(name))
	}
	*now = now.Add(time.Second)
	c.Resource("in flight").Enter()
	return c
}

// sameNumber writes the value of a line in one format. From a million on, client_golang writes integers with an
// exponent.
func sameNumber(t *testing.T, line string) string {
	t.Helper()
	fields := strings.Fields(line)
	if !strings.HasPrefix(line, "windowstat_memory_") {
		return line
	}
	v, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintln(fields[0], int64(v))
}

// The pages that this package writes have the same lines as client_golang writes for the same metrics, except the label
// code of calls without a code. The registries of client_golang require the same labels for all series, and an empty
// label equals a missing one.
func TestTextMatchesClientGolang(t *testing.T) {
	c := busy(t)
	for _, o := range []prom.Options{{}, {By: prom.ByOrigin}, {By: prom.ByEntrance}} {
		h, err := prom.Handler(c, o)
		if err != nil {
			t.Fatal(err)
		}
		families, err := register(t, c, o).Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []expfmt.Format{
			expfmt.NewFormat(expfmt.TypeTextPlain),
			expfmt.NewFormat(expfmt.TypeOpenMetrics),
		} {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept", string(format))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			got := own(rec.Body.String())

			var b bytes.Buffer
			enc := expfmt.NewEncoder(&b, format)
			for _, f := range families {
				if err := enc.Encode(f); err != nil {
					t.Fatal(err)
				}
			}
			want := own(strings.NewReplacer(`{code=""}`, "", `{code="",`, "{").Replace(b.String()))
			for _, lines := range [][]string{got, want} {
				for i, line := range lines {
					lines[i] = sameNumber(t, line)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, %s: the pages differ", o.By, format)
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("got %swant %s", got[i], want[i])
						break
					}
				}
			}
			if len(got) < 250 || !strings.HasPrefix(rec.Header().Get("Content-Type"), string(format)) {
				t.Errorf("%d lines of %s", len(got), rec.Header().Get("Content-Type"))
			}
			ends := strings.HasSuffix(rec.Body.String(), "# EOF\n")
			if ends != (format.FormatType() == expfmt.TypeOpenMetrics) {
				t.Errorf("%s ends with # EOF: %t", format, ends)
			}
			if strings.Count(rec.Body.String(), "go_goroutines ") == 0 {
				t.Error("no metrics of the Go runtime")
			}
		}
	}
}

// own returns the lines about windowstat, sorted, without the cost of scrapes.
func own(page string) []string {
	var lines []string
	for line := range strings.Lines(page) {
		if strings.Contains(line, "windowstat_") && !strings.Contains(line, "windowstat_scrape_") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// The lines of one metric are adjacent and follow its HELP and TYPE. The same holds for histograms.
func TestFamiliesAreContiguous(t *testing.T) {
	h, err := prom.Handler(busy(t), prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	seen := map[string]bool{}
	family := ""
	for line := range strings.Lines(rec.Body.String()) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), " ")
		name, _, _ = strings.Cut(name, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if rest, ok := strings.CutSuffix(name, suffix); ok && rest == family {
				name = rest
			}
		}
		if name != family {
			if !strings.HasPrefix(line, "# HELP ") || seen[name] {
				t.Fatalf("%s after %s", line, family)
			}
			family, seen[name] = name, true
		}
	}
}

func TestGzip(t *testing.T) {
	h, err := prom.Handler(busy(t), prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := ""
	for _, tc := range []struct {
		header string
		zipped bool
	}{{"", false}, {"gzip", true}, {"deflate, gzip;q=0.5", true}, {"gzip;q=0", false}, {"br", false}} {
		for range 2 { // the second time with the buffers of the first
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept-Encoding", tc.header)
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if zipped := rec.Header().Get("Content-Encoding") == "gzip"; zipped != tc.zipped {
				t.Fatalf("%q: zipped %t", tc.header, zipped)
			}
			body := rec.Body.String()
			if tc.zipped {
				z, err := gzip.NewReader(rec.Body)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(z)
				if err != nil {
					t.Fatal(err)
				}
				body = string(b)
			}
			page := fmt.Sprint(own(body))
			if plain == "" {
				plain = page
			}
			if page != plain {
				t.Errorf("%q: another page", tc.header)
			}
		}
	}
}
