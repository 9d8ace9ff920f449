package logquery

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestPatterns(t *testing.T) {
	names := []string{"GET /api", "GET /api/users", "get /api", "/a/", "a.b", "axb", "new\nline", "*"}
	for _, tc := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"GET /api"}, "GET /api"},
		{[]string{"GET /api*"}, "GET /api,GET /api/users"},
		{[]string{"GET*user*"}, "GET /api/users"},
		{[]string{"*/a*i"}, "GET /api,get /api"},
		{[]string{"*api/*s"}, "GET /api/users"},
		{[]string{"*/"}, "/a/"},
		{[]string{"/a*a/"}, ""}, // an empty text for two stars
		{[]string{"a*x*b", "*\n*"}, "axb,new\nline"},
		{[]string{"**a**p**i**"}, "GET /api,GET /api/users,get /api"},
		{[]string{"*"}, strings.Join(names, ",")},
		{[]string{"~a.b"}, "a.b,axb"},
		{[]string{"a.b"}, "a.b"},
		{[]string{"~a"}, ""},
		{[]string{"~a|/a/"}, "/a/"},
		{[]string{"~(?i)get /api", "/a/"}, "GET /api,get /api,/a/"},
		{[]string{"~new.*"}, "new\nline"},
		{[]string{`~\Q*\E`}, "*"},
	} {
		var patterns []Pattern
		for _, text := range tc.patterns {
			p, err := ParsePattern(text)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			patterns = append(patterns, p)
		}
		all, _ := Select(Source{Zone: time.UTC, Resources: patterns}, time.Now())
		var got []string
		for _, name := range names {
			if all[0].Match(name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, ",") != tc.want {
			t.Errorf("%q: %q, want %q", tc.patterns, got, tc.want)
		}
	}
	if all, _ := Select(Source{Zone: time.UTC}, time.Now()); all[0].Match != nil {
		t.Error("without patterns some names do not match")
	}
	for _, text := range []string{"", "~(", "~a)(b"} {
		if _, err := ParsePattern(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A pattern with * matches the same random names as a regular expression with .* instead.
func TestPatternsBesideRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(letters string, most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	matched := 0
	for range 20_000 {
		pattern, name := "a"+text("ab*", 6), "a"+text("ab", 8)
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(name)
		if p.matches(name) != want {
			t.Fatalf("%s matches %s: %v", pattern, name, !want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}
