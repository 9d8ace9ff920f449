package leap_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

const ms = time.Millisecond

func newArray(t *testing.T, span time.Duration, n int) *leap.Array[int] {
	t.Helper()
	a, err := leap.NewArray[int](span, n)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func TestNewArrayNamesEveryInvalidArgument(t *testing.T) {
	for _, tc := range []struct {
		span time.Duration
		n    int
		want []string // parts of the error; nil if there must be no error
	}{
		{time.Second, 2, nil},
		{time.Minute, 60, nil},
		{10 * ms, 1, nil},
		{time.Hour, 3600, nil},
		{0, 2, []string{"span 0s"}},
		{-time.Second, 2, []string{"span -1s"}},
		{2 * time.Hour, 2, []string{"span 2h0m0s"}},
		{time.Second, 0, []string{"0 buckets"}},
		{time.Second, -1, []string{"-1 buckets"}},
		{time.Second, 3, []string{"3 buckets do not divide 1s"}},
		{time.Second, 1 << 30, []string{"do not divide"}},
		{20 * ms, 40, []string{"shorter than 1ms"}},
		{time.Nanosecond, 0, []string{"span 1ns", "0 buckets"}},
	} {
		_, err := leap.NewArray[int](tc.span, tc.n)
		if len(tc.want) == 0 && err != nil {
			t.Errorf("NewArray(%v, %d): %v", tc.span, tc.n, err)
		}
		for _, part := range tc.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("NewArray(%v, %d): error %v does not contain %q", tc.span, tc.n, err, part)
			}
		}
	}
}

func TestIndexAndStart(t *testing.T) {
	a := newArray(t, time.Second, 2)
	for _, tc := range []struct {
		at    time.Duration
		index int64
		start time.Duration
	}{
		{0, 0, 0},
		{499 * ms, 0, 0},
		{500 * ms, 1, 500 * ms},
		{3700 * ms, 7, 3500 * ms},
		{-1, -1, -500 * ms},
		{-500 * ms, -1, -500 * ms},
		{-501 * ms, -2, -1000 * ms},
	} {
		if got := a.Index(tc.at); got != tc.index {
			t.Errorf("Index(%v) = %d, want %d", tc.at, got, tc.index)
		}
		if got := a.Start(tc.at); got != tc.start {
			t.Errorf("Start(%v) = %v, want %v", tc.at, got, tc.start)
		}
	}
}

func window(a *leap.Array[int], now, span time.Duration) (starts []time.Duration, sum int) {
	for start, b := range a.Window(now, span) {
		starts = append(starts, start)
		sum += *b
	}
	return starts, sum
}

// Window leaves out a bucket that started exactly one span before the given time. Sentinel includes such a bucket: it
// drops only buckets that started more than one span before this time.
func TestWindowIsHalfOpen(t *testing.T) {
	a := newArray(t, time.Second, 2)
	*a.Open(0) += 5
	*a.Open(500 * ms) += 7
	for _, tc := range []struct {
		now  time.Duration
		want int
	}{
		{999 * ms, 12}, {1000 * ms, 7}, {1001 * ms, 7}, {1499 * ms, 7}, {1500 * ms, 0}, {time.Hour, 0},
	} {
		if _, got := window(a, tc.now, time.Second); got != tc.want {
			t.Errorf("sum at %v = %d, want %d", tc.now, got, tc.want)
		}
	}
}

func TestWindowIsOldestFirstAndSkipsTheFuture(t *testing.T) {
	a := newArray(t, time.Second, 4)
	for _, at := range []time.Duration{500 * ms, 750 * ms, 1000 * ms, 1250 * ms} {
		*a.Open(at) = 1
	}
	starts, _ := window(a, 1100*ms, time.Second)
	if want := []time.Duration{500 * ms, 750 * ms, 1000 * ms}; !slices.Equal(starts, want) {
		t.Errorf("window at 1.1s starts at %v, want %v", starts, want)
	}
	starts, _ = window(a, 1250*ms, time.Minute)
	if want := []time.Duration{500 * ms, 750 * ms, 1000 * ms, 1250 * ms}; !slices.Equal(starts, want) {
		t.Errorf("window of a minute at 1.25s starts at %v, want %v", starts, want)
	}
	if starts, _ = window(newArray(t, time.Second, 4), 0, time.Second); starts != nil {
		t.Errorf("an unused ring has buckets at %v", starts)
	}
}

// A write at a time before the newest bucket goes to the newest bucket. Sentinel discards such a write.
func TestOpenBeforeTheNewestReturnsTheNewest(t *testing.T) {
	a := newArray(t, time.Second, 2)
	*a.Open(10 * time.Second) += 1
	*a.Open(9 * time.Second) += 10
	*a.Open(-time.Hour) += 100
	if starts, sum := window(a, 10*time.Second, time.Second); sum != 111 || len(starts) != 1 {
		t.Errorf("buckets %v hold %d, want one with 111", starts, sum)
	}
}

func TestAtKeepsABucketUntilItsSlotIsNeeded(t *testing.T) {
	a := newArray(t, 4*time.Second, 4)
	if a.At(0) != nil {
		t.Error("an unused ring has a bucket")
	}
	*a.Open(0) = 7
	*a.Open(101 * time.Second) = 8 // uses slot 1, because 101 mod 4 = 1
	if b := a.At(0); b == nil || *b != 7 {
		t.Errorf("bucket 0 is %v after a jump that did not need its slot", b)
	}
	if a.At(time.Second) != nil {
		t.Error("second 1 was never opened")
	}
	*a.Open(104 * time.Second) = 9 // uses the slot of bucket 0, because 104 mod 4 = 0
	if a.At(0) != nil || *a.At(101 * time.Second) != 8 {
		t.Error("bucket 0 should be replaced, and bucket 101 kept")
	}
}

func TestLengthAndSpan(t *testing.T) {
	a := newArray(t, time.Minute, 60)
	if a.Length() != time.Second || a.Span() != time.Minute {
		t.Errorf("60 buckets in a minute: length %v, span %v", a.Length(), a.Span())
	}
}
