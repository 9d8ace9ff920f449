package otlp

import (
	"testing"
	"time"
)

// FuzzDecode decodes and counts arbitrary bytes. Nothing panics, each span has one result, and each call completes.
func FuzzDecode(f *testing.F) {
	spans := []sent{at(1, 99, 100), at(0, 99, 100), at(2, 50, 99)}
	spans[2].state, spans[2].failed = "ot=th:8", true
	f.Add(toProtobuf(spans...))
	f.Add(toJSON(spans...))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":-1,"flags":"x"}]}]}]}`))
	f.Add([]byte{0x0a, 0x03, 0x12, 0x01, 0x12})
	f.Fuzz(func(t *testing.T, request []byte) {
		r := receive(t, Options{}, second(100), time.Time{})
		for i, decode := range []func(*batch, []byte) error{(*batch).protobuf, (*batch).json} {
			var b batch
			if err := decode(&b, request); err != nil {
				continue
			}
			n, other := len(b.spans), b.counts
			before := r.counts
			not, err := r.take(&b, second(101+float64(i)))
			if err != nil {
				t.Fatal(err)
			}
			c := r.counts
			taken := int64(0)
			for _, result := range []int{counted, duplicate, late, future} {
				taken += c[result] - before[result]
			}
			if int(taken) != n || c[internal]-before[internal] != other[internal] ||
				c[malformed]-before[malformed] != other[malformed] ||
				int64(not.spans) < other[malformed] {
				t.Errorf("%d spans, %+v, then %+v", n, before, c)
			}
		}
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		total := r.stats.Tree().View().Snapshot(nil)
		if total.InFlight != 0 || total.Total.Pass != total.Total.Complete {
			t.Errorf("%+v", total)
		}
	})
}
