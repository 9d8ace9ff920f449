package replay

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// The status of a line is the code of its call: with and without durations, in busy seconds whose equal calls are
// merged, and for unregistered statuses. Blocked calls have no code; neither do calls whose line has no status.
func TestCodesAreTheStatuses(t *testing.T) {
	statuses := []int{200, 200, 404, 429, 503, 299, 0, 499, 304, 444, 494}
	for format, line := range map[string]string{
		"$msec $status $request_time": "%d.000 %s 0.500\n",
		"$msec $status":               "%d.000 %s\n",
	} {
		t.Run(format, func(t *testing.T) {
			var text strings.Builder
			want := map[string]int64{}
			for i := range 9000 {
				status := statuses[i%len(statuses)]
				logged := fmt.Sprint(status)
				code := logged
				switch status {
				case 0:
					logged, code = "-", ""
				case 299:
					code = "other"
				}
				fmt.Fprintf(&text, line, 1_700_000_000+i/3000, logged)
				if status != 429 {
					want[code]++
				}
			}
			o := options(t, "-")
			o.Stdin = strings.NewReader(text.String())
			var err error
			if o.Format, err = accesslog.Nginx(format); err != nil {
				t.Fatal(err)
			}
			f, err := NewFollower(o, time.Unix(1_700_000_000-1, 0))
			if err != nil {
				t.Fatal(err)
			}
			c, err := collector.New(collector.Options{Now: f.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			count := func() { // before the Collector retires resources
				clear(got)
				for _, x := range c.Seal().Resources {
					for code, n := range x.View().Codes() {
						got[code.String()] += n
					}
				}
			}
			if err := f.Run(t.Context(), c, count); err != nil {
				t.Fatal(err)
			}
			if r := f.Report(); r.Timed != (strings.HasSuffix(format, "time")) || r.Uncounted() != 0 {
				t.Fatalf("%+v", r)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// The gRPC status of a line is the code of its call, in every format with such a field. It also decides whether the
// call failed and whether it earns a name. A method that does not exist has HTTP status 200.
func TestGRPCStatusOfLines(t *testing.T) {
	for name, c := range map[string]struct {
		format func() (*accesslog.Format, error)
		line   string // format of a line; arguments: method and status
	}{
		"nginx": {
			func() (*accesslog.Format, error) {
				return accesslog.Nginx(`$msec "$request" $status $sent_http_grpc_status $sent_trailer_grpc_status ` +
					`$request_time`)
			},
			`1700000000.000 "POST /shop.Cart/%s HTTP/2.0" 200 - %s 0.500`,
		},
		"httpd": {
			func() (*accesslog.Format, error) { return accesslog.Apache(`%{sec}t "%r" %>s %{Grpc-Status}^to %D`) },
			`1700000000 "POST /shop.Cart/%s HTTP/2.0" 200 %s 500`,
		},
		"JSON": {
			func() (*accesslog.Format, error) { return accesslog.Named("json") },
			`{"ts":1700000000.0,"status":200,"request":"POST /shop.Cart/%s HTTP/2.0","grpc_status":"%s",` +
				`"request_time":0.5}`,
		},
		"JSON with a key": {
			func() (*accesslog.Format, error) {
				f, err := accesslog.Named("json")
				if err != nil {
					return nil, err
				}
				return f.WithKeys(map[string]string{"grpc": "rpc.code"})
			},
			`{"ts":1700000000.0,"status":200,"request":"POST /shop.Cart/%s HTTP/2.0","rpc":{"code":"%s"},` +
				`"request_time":0.5}`,
		},
	} {
		var text strings.Builder
		for _, call := range [][2]string{
			{"Add", "0"},
			{"Add", "0"},
			{"Add", "5"},
			{"Add", "14"},
			{"Made", "12"},
			{"Add", "-"},
			{"Add", "DEADLINE_EXCEEDED"},
		} {
			fmt.Fprintf(&text, c.line+"\n", call[0], call[1])
		}
		o := options(t, "-")
		o.Stdin, o.Names = strings.NewReader(text.String()), &httpstat.NamesOptions{}
		var err error
		if o.Format, err = c.format(); err != nil {
			t.Fatal(err)
		}
		f, err := NewFollower(o, time.Unix(1_700_000_000-1, 0))
		if err != nil {
			t.Fatal(err)
		}
		s, err := collector.New(collector.Options{Now: f.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		count := func() {
			clear(got)
			for _, x := range s.Seal().Resources {
				for code, n := range x.View().Codes() {
					if n > 0 {
						got[x.Name()+" "+code.String()] += n
					}
				}
				got["failed"] += x.View().Snapshot(nil).Total.Exception
			}
		}
		if err := f.Run(t.Context(), s, count); err != nil {
			t.Fatal(err)
		}
		const add = "POST /shop.Cart/Add "
		want := map[string]int64{
			add + "OK": 1, add + "NotFound": 1, add + "Unavailable": 1, add + "200": 1, add + "DeadlineExceeded": 1,
			httpstat.Unmatched + " OK":            1, // before the name was earned
			httpstat.Unmatched + " Unimplemented": 1, "failed": 3,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
