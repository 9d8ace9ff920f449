package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func once(t *testing.T, url string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Once(t.Context(), &b, []*Endpoint{newEndpoint(t, url)}, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The text contains the recorded numbers.
func TestOnce(t *testing.T) {
	s := newService(t)
	base := s.serve(t)
	if got, want := once(t, base, Options{}),
		"second\tpass\tblock\texception\trt_mean_ms\trt_p99_ms\tin_flight_avg\tpeak\tkind\tresource\n"; got != want {
		t.Errorf("nothing was counted, and there is\n%q", got)
	}
	s.calls("a", 7, 10*time.Millisecond) // makes the peak of the minute
	s.Resource("b\t\x1b[2J").Block("")
	open := s.Resource("c").Enter()
	_ = s.Resource("a").Do(func() error { return errors.New("x") })
	s.calls("a", 3, 2500*time.Microsecond)
	at := s.now.Unix() - 1
	row := func(f string) string { return fmt.Sprintf("%d\t%s\n", at, strings.ReplaceAll(f, " ", "\t")) }
	head := "second\tpass\tblock\texception\trt_mean_ms\trt_p99_ms\tin_flight_avg\tpeak\tkind\tresource\n"
	a, b, c := row(
		`4 0 1 1.875 2.5 0.008 7 resource a`,
	), row(
		`0 1 0 - - 0 0 resource b\t\x1b[2J`,
	), row(
		`1 0 0 - - 1 1 resource c`,
	)
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, head + a + c + b},
		{Options{Sort: "block"}, head + b + a + c},
		{Options{Sort: "resource", Filter: "A"}, head + a},
		{Options{Sort: "in_flight_avg", Filter: "C"}, head + c},
	} {
		if got := once(t, base, tc.o); got != tc.want {
			t.Errorf("%+v: got\n%swant\n%s", tc.o, got, tc.want)
		}
	}
	open.Exit(nil)
	if err := Once(t.Context(), io.Discard, []*Endpoint{newEndpoint(t, base)}, Options{Sort: "size"}); err == nil ||
		!strings.Contains(err.Error(), "p99") {
		t.Error(err)
	}
}
