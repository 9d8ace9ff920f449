package node

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// roundTrip packs and unpacks the record rec with its slides, and the histogram h, and compares the results with the
// originals.
func roundTrip(t *testing.T, l *layout, rec record, slides []int64, h *cells[uint16]) {
	t.Helper()
	s := &Statistic{history: &history{}}
	s.first.config = &Config{layout: l}
	s.first.completions = &completions{cells: *h}
	want := make([]int64, len(l.upper))
	h.addTo(want, 0)
	b, cells := rec.append(nil, slides), []byte(nil)
	if rec.Complete > 0 {
		cells = s.packCells(nil, &rec)
	}
	for _, behind := range []int{spare, spare + 5} {
		// The bytes after a record must not change the result. The function padded copies b into a longer array, and
		// sets the bytes after b to 0xa5.
		padded := func(b []byte) []byte {
			return append(append(make([]byte, 0, len(b)+behind), b...), slices.Repeat([]byte{0xa5}, behind)...)[:len(b)]
		}
		var got record
		sums, counts := make([]int64, len(slides)), make([]int64, len(l.upper))
		got.unpack(padded(b), int64(len(slides)), sums)
		if got != rec || !slices.Equal(sums, slides) {
			t.Fatalf("packed %+v with slides %v, unpacked %+v with %v", rec, slides, got, sums)
		}
		l.addCells(counts, &got, padded(cells))
		if !slices.Equal(counts, want) {
			t.Fatalf("cells of %+v are %v, want %v", rec, counts, want)
		}
	}
}

// FuzzRecords packs and unpacks records with arbitrary numbers, together with histograms of arbitrary response times
// and batches.
func FuzzRecords(f *testing.F) {
	l, err := newLayout(DefaultBounds())
	if err != nil {
		f.Fatal(err)
	}
	extremes := []int64{
		0, 1, 2, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64,
	}
	var all []byte
	for _, v := range extremes {
		all = binary.LittleEndian.AppendUint64(all, uint64(v))
	}
	f.Add(all, 3)
	f.Add([]byte{}, 1)
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		var b []byte
		for range random.IntN(80) {
			v := random.Uint64() >> random.IntN(64)
			if random.IntN(4) == 0 {
				v = uint64(extremes[random.IntN(len(extremes))])
			}
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		f.Add(b, random.IntN(5))
	}
	f.Fuzz(func(t *testing.T, b []byte, perSec int) {
		number := func() (v int64) {
			if len(b) >= 8 {
				v = int64(binary.LittleEndian.Uint64(b) &^ (1 << 63))
				b = b[8:]
			}
			return v
		}
		rec := record{
			Counts:          Counts{Pass: number(), Block: number(), OccupiedPass: number(), Exception: number()},
			inFlightAtStart: number(), inFlight: number(), maxInFlight: number(), maxInFlightUpper: number(),
			lateEntry: time.Duration(number()), inFlightTime: time.Duration(number()),
		}
		slides := make([]int64, max(perSec&7, 1))
		for i := range slides {
			slides[i] = number()
		}
		slides[len(slides)-1] = rec.Pass
		var open tally
		var h cells[uint16]
		for len(b) > 0 {
			rt, n := time.Duration(number()), max(number(), 1)
			open.complete(rt, n, false)
			h.count(l.cell(rt), n)
			if len(b) < 8 {
				break
			}
		}
		rec.Complete, rec.RTSum, rec.RTMin, rec.RTMax = open.Complete, open.RTSum, open.RTMin, open.RTMax
		roundTrip(t, l, rec, slides, &h)
	})
}

// The test writes each number with each Rice parameter, and reads the number back unchanged.
func TestNumbersRoundTrip(t *testing.T) {
	numbers := []uint64{0, math.MaxUint64, math.MaxInt64}
	for n := range 64 {
		v := uint64(1) << n
		numbers = append(numbers, v-1, v, v+1)
	}
	for k := range uint(maxLowBits + 1) {
		w := bitWriter{}
		for _, v := range numbers {
			w = w.code(v, k)
			w = w.putRemainder(v|1<<63, 64)
		}
		r := readBits(append(w.end(), make([]byte, spare)...))
		for _, v := range numbers {
			if got := r.code(k); got != v {
				t.Fatalf("with %d bits %d is read as %d", k, v, got)
			}
			if got := r.readRemainder(64); got != v|1<<63 {
				t.Fatalf("%d of 64 bits is read as %d", v, got)
			}
		}
	}
}
