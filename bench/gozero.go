package bench

import (
	"time"

	"github.com/zeromicro/go-zero/core/collection"
)

// newGoZero uses go-zero's rolling window, 60 buckets of a second, and adds the response time when a call completes: a
// sum and a count. The window reads its own clock to find the bucket. It records no passes, no calls in flight and no
// distribution.
func newGoZero(names []string) (Recorder, error) {
	bucket := func() *collection.Bucket[int64] { return new(collection.Bucket[int64]) }
	list := make([]*collection.RollingWindow[int64, *collection.Bucket[int64]], len(names))
	for i := range list {
		list[i] = collection.NewRollingWindow[int64](bucket, 60, time.Second)
	}
	return Recorder{
		Call: func(i int) {
			start := Now()
			list[i].Add(int64(Now() - start))
		},
		Took: func(i int, rt time.Duration) { list[i].Add(int64(rt)) },
	}, nil
}
