package accesslog

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestParseDoesNotAllocate(t *testing.T) {
	lines := map[string][]string{}
	for name, line := range benchLines {
		if name[:4] == "json" {
			name = "json"
		}
		line = fmt.Sprintf(line, 7)
		lines[name] = append(lines[name], line, "rubbish", line[:len(line)/2])
	}
	lines["json"] = append(lines["json"],
		`{"time":"2022-03-09T21:30:01Z","duration":62.5,"uri":"\/a\u00e4","host":"\n","status":"200"}`)
	for name, lines := range lines {
		p := parser(t, name)
		for _, s := range lines {
			line := []byte(s)
			var r Record
			_ = p.Parse(line, &r) // grows the buffer for unescaped strings
			if n := testing.AllocsPerRun(100, func() { _ = p.Parse(line, &r) }); n != 0 {
				t.Errorf("%s: %v allocations for %q", name, n, line)
			}
		}
	}
}

func TestTimesWithoutAZone(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Apache(`%{%F %T}t %>s`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone       *time.Location
		line, want string
	}{
		{nil, `2015-05-17 10:05:03 200`, "2015-05-17T10:05:03Z"},
		{newYork, `2015-03-08 01:59:59 200`, "2015-03-08T06:59:59Z"}, // the night when summer time begins
		{newYork, `2015-03-08 03:00:00 200`, "2015-03-08T07:00:00Z"},
		{newYork, `2015-11-01 23:00:00 200`, "2015-11-02T04:00:00Z"},
	} {
		var r Record
		if err := f.NewParser(c.zone).Parse([]byte(c.line), &r); err != nil {
			t.Errorf("%s in %s: %v", c.line, c.zone, err)
		} else if got := r.Time.Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.line, c.zone, got, c.want)
		}
	}
}

func TestADayIsNotTakenForTheNext(t *testing.T) {
	p := parser(t, "common")
	at := time.Date(2015, 12, 30, 23, 59, 59, 0, time.FixedZone("", -3600))
	for range 100 {
		var r Record
		line := at.Format(`::1 - - [02/Jan/2006:15:04:05 -0700]`) + ` "GET / HTTP/1.1" 200 1`
		if err := p.Parse([]byte(line), &r); err != nil || !r.Time.Equal(at) {
			t.Fatalf("%s: %s, %v", line, r.Time, err)
		}
		at = at.Add(7 * time.Hour).In(time.FixedZone("", -at.Hour()*900))
	}
}

func TestWhatALineDoesNotHaveIsNotThatOfTheLineBefore(t *testing.T) {
	for format, lines := range map[string][2]string{
		"combined-time": {
			fmt.Sprintf(benchLines["combined-time"], 1),
			`- - - [17/May/2015:10:05:03 +0000] "-" -`,
		},
		"json": {
			`{"time":"2022-03-09T21:30:01Z","duration":1,"method":"GET","uri":"/a\"","host":"h","remote_addr":"c",` +
				`"status":"200"}`,
			`{"time":"2015-05-17T10:05:03Z","status":0,"request":"\""}`,
		},
	} {
		p := parser(t, format)
		var r Record
		if err := p.Parse([]byte(lines[0]), &r); err != nil || !r.HasDuration || r.Method == nil || r.Target == nil ||
			r.Client == nil {
			t.Fatalf("%s: %s, %v", format, show(&r), err)
		}
		err := p.Parse([]byte(lines[1]), &r)
		if got, want := show(&r), `2015-05-17T10:05:03Z end - 0 "" "" "" ""`; err != nil || got != want {
			t.Errorf("%s: %v\n got %s\nwant %s", format, err, got, want)
		}
	}
}

// Goroutines share a format, and each has its own parser. The race detector checks this.
func TestParsersOfOneFormatAreIndependent(t *testing.T) {
	f, err := Named("combined")
	if err != nil {
		t.Fatal(err)
	}
	lines := generate(200)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			p := f.NewParser(nil)
			for _, line := range lines {
				var r Record
				if err := p.Parse(line, &r); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		})
	}
	wg.Wait()
}
