package main

import (
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	names := []string{"GET /api", "GET /api/users", "get /api", "/a/", "a.b", "axb", "new\nline", "*"}
	for _, tc := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"GET /api"}, "GET /api"},
		{[]string{"GET /api*"}, "GET /api,GET /api/users"},
		{[]string{"*"}, strings.Join(names, ",")},
		{[]string{"~a.b"}, "a.b,axb"},
		{[]string{"a.b"}, "a.b"},
		{[]string{"~a"}, ""},
		{[]string{"~a|/a/"}, "/a/"},
		{[]string{"~(?i)get /api", "/a/"}, "GET /api,get /api,/a/"},
		{[]string{"~new.*"}, "new\nline"},
		{[]string{`~\Q*\E`}, "*"},
	} {
		match, err := parsePatterns(tc.patterns)
		if err != nil {
			t.Errorf("%q: %v", tc.patterns, err)
			continue
		}
		var got []string
		for _, name := range names {
			if match(name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, ",") != tc.want {
			t.Errorf("%q: %q, want %q", tc.patterns, got, tc.want)
		}
	}
	if match, err := parsePatterns(nil); match != nil || err != nil {
		t.Errorf("none: %v", err)
	}
	if _, err := parsePatterns([]string{"", "~(", "ok", "~a)(b"}); err == nil || strings.Count(err.Error(), "--resource: ") != 3 {
		t.Errorf("%v", err)
	}
}
