package accesslog

import (
	"strings"
	"testing"
)

const (
	iisLog = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-11-22 10:00:00\n" +
		iisFields + "\n" +
		"2026-11-22 10:00:01 10.0.0.1 GET /a x=1 443 - 192.0.2.7 Mozilla/5.0+(Windows+NT) https://a.example/ 200 0 0 " +
		"7\n" +
		"2026-11-22 10:00:02 10.0.0.1 POST /b - 443 ann 2001:db8::7 - - 500 19 2 1500\n"
	// IIS repeats the header after a restart, perhaps with different fields.
	iisAgain = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-11-22 11:00:00\n" +
		"#Fields: date time c-ip cs-host cs-method cs-uri-stem sc-status time-taken\n" +
		"2026-11-22 11:00:01 192.0.2.8 a.example GET /c 404 3\n"
	cloudFront = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem " +
		"sc-status cs(Referer) cs(User-Agent) " +
		"cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken " +
		"x-forwarded-for\n" +
		"2026-11-22\t10:00:01\tFRA2-C1\t392\t2001:db8::7\tGET\td1.cloudfront.net\t/a%20b\t" +
		"200\t-\tMozilla/5.0%20(X)\t-\t-\tHit\tid==\ta.example\thttps\t23\t0.007\t-\n" +
		"2026-11-22\t10:00:02\tFRA2-C1\t0\t192.0.2.7\tGET\td1.cloudfront.net\t/c\t" +
		"000\t-\t-\t-\t-\tError\tid==\ta.example\thttps\t23\t1.500\t-\n"
)

func TestW3C(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []string
	}{
		"IIS": {iisLog + iisAgain, []string{
			`2026-11-22T10:00:01Z end 7ms 200 "GET" "/a" "" "192.0.2.7"`,
			`2026-11-22T10:00:02Z end 1.5s 500 "POST" "/b" "" "2001:db8::7"`,
			`2026-11-22T11:00:01Z end 3ms 404 "GET" "/c" "a.example" "192.0.2.8"`,
		}},
		"IIS with a BOM and CR LF": {"\uFEFF" + strings.ReplaceAll(iisLog, "\n", "\r\n"), []string{
			`2026-11-22T10:00:01Z end 7ms 200 "GET" "/a" "" "192.0.2.7"`,
			`2026-11-22T10:00:02Z end 1.5s 500 "POST" "/b" "" "2001:db8::7"`,
		}},
		"CloudFront": {cloudFront, []string{
			`2026-11-22T10:00:01Z end 7ms 200 "GET" "/a%20b" "a.example" "2001:db8::7"`,
			`2026-11-22T10:00:02Z end 1.5s 0 "GET" "/c" "a.example" "192.0.2.7"`,
		}},
		"tabs": {
			"#Fields:\tdate\ttime\tsc-status\ttime-taken\n2026-11-22\t10:00:01\t204\t7\n",
			[]string{`2026-11-22T10:00:01Z end 7ms 204 "" "" "" ""`},
		},
	} {
		lines := strings.Split(c.log, "\n")
		var sample [][]byte
		for _, line := range lines {
			sample = append(sample, []byte(line))
		}
		f, err := Detect(sample)
		if err != nil || f.String() != "w3c" {
			t.Errorf("%s: %v, %v", name, f, err)
			continue
		}
		p := f.NewParser(nil)
		var got []string
		for _, line := range sample {
			var r Record
			if err := p.Parse(line, &r); err == nil {
				got = append(got, show(&r))
			} else if k := p.Kind(); k != Directive && k != Empty {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		// A reader that starts in the middle of a log uses the fields of the sample.
		if name == "CloudFront" {
			var r Record
			if err := f.NewParser(nil).Parse(sample[2], &r); err != nil || show(&r) != c.want[0] {
				t.Errorf("%s without its header: %v, %s", name, err, show(&r))
			}
		}
	}
	// Without a directive, the lines have the default fields of IIS.
	var r Record
	if err := parser(t, "w3c").Parse([]byte(strings.Split(iisLog, "\n")[4]), &r); err != nil ||
		r.Duration.Milliseconds() != 7 {
		t.Errorf("without a header: %v, %s", err, show(&r))
	}
}

// After a directive without a time or a status, lines are malformed up to the next directive.
func TestW3CDirectivesThatCannotBeRead(t *testing.T) {
	for directive, want := range map[string]string{
		"#Fields: date time c-ip":      "it has no status",
		"#Fields: time sc-status":      "its time has no date",
		"#Fields:":                     "it has no time",
		"#Fields: date sc-status time": "its time has no",
	} {
		p := parser(t, "w3c")
		var r Record
		_ = p.Parse([]byte(directive), &r)
		err := p.Parse([]byte("2026-11-22 10:00:01 200"), &r)
		if err == nil || !strings.Contains(err.Error(), want) || p.Kind() != Call {
			t.Errorf("%s: %v, %v", directive, err, p.Kind())
		}
		_ = p.Parse([]byte("#Fields: date time sc-status"), &r)
		if err := p.Parse([]byte("2026-11-22 10:00:01 200"), &r); err != nil {
			t.Errorf("behind %s: %v", directive, err)
		}
	}
}

// FuzzW3C reads any lines after any directive.
func FuzzW3C(f *testing.F) {
	for _, log := range []string{iisLog + iisAgain, cloudFront} {
		f.Add([]byte(log))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		p := parser(t, "w3c")
		for line := range strings.Lines(string(log)) {
			var r Record
			b := []byte(line)
			if p.Parse(b, &r) == nil {
				sane(t, p, b, &r)
			}
		}
	})
}
