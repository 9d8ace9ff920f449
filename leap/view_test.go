package leap_test

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func TestViewsThatCannotBeExactAreRefused(t *testing.T) {
	a := newArray(t, 10*time.Second, 20) // sentinel-golang's shape
	for _, tc := range []struct {
		span time.Duration
		n    int
		want []string // parts of the error; none means no error
	}{
		{time.Second, 2, nil},
		{time.Second, 1, nil},
		{10 * time.Second, 20, nil},
		{10 * time.Second, 1, nil},
		{5 * time.Second, 5, nil},
		{500 * ms, 1, nil},
		{0, 2, []string{"must be positive"}},
		{time.Second, 0, []string{"must be positive"}},
		{time.Second, 4, []string{"bucket of 250ms"}},
		{3 * time.Second, 6, []string{"3s does not fit"}},
		{20 * time.Second, 2, []string{"20s does not fit"}},
		{1500 * ms, 2, []string{"1.5s does not fit", "bucket of 750ms"}},
		{time.Second, 3, []string{"3 buckets do not divide"}},
	} {
		_, err := a.View(tc.span, tc.n)
		if len(tc.want) == 0 && err != nil {
			t.Errorf("View(%v, %d): %v", tc.span, tc.n, err)
		}
		for _, part := range tc.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("View(%v, %d): error %v does not say %q", tc.span, tc.n, err, part)
			}
		}
	}
}

func TestViewGroupsTheRingsBuckets(t *testing.T) {
	a := newArray(t, 10*time.Second, 20)
	v, err := a.View(2*time.Second, 2)
	if err != nil {
		t.Fatal(err)
	}
	for at := time.Duration(0); at < 10*time.Second; at += 500 * ms {
		*a.Open(at) = 1
	}
	groups := func(now time.Duration) map[time.Duration]int {
		m := map[time.Duration]int{}
		for start, b := range v.Window(now) {
			m[start] += *b
		}
		return m
	}
	if got, want := groups(5900*ms), (map[time.Duration]int{4 * time.Second: 2, 5 * time.Second: 2}); !maps.Equal(got, want) {
		t.Errorf("at 5.9 s: %v, want %v", got, want)
	}
	if got, want := groups(6*time.Second), (map[time.Duration]int{4 * time.Second: 1, 5 * time.Second: 2, 6 * time.Second: 1}); !maps.Equal(got, want) {
		t.Errorf("at 6 s: %v, want %v", got, want)
	}
	for range v.Window(5 * time.Second) {
		break // stopping early is allowed
	}
}
