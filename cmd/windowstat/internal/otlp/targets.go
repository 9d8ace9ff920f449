package otlp

import (
	"math"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// maxTargets is the maximum number of targets of a service that have their own names.
const maxTargets = 100

// star replaces a target that has no name of its own.
var star = []byte("*")

// targets bounds the targets of outbound calls: addresses, databases, destinations of messages. A crawler, a service
// that sends webhooks, or reply queues with random names would otherwise fill the table of resources.
//
// Each service has the first maxTargets targets that it uses. All others are named "*" until a target of any service
// has been idle for eleven minutes, as long as a resource. All services together have as many targets as there may be
// resources, shared in the same way. Concurrent use is not safe.
type targets struct {
	most  int
	byKey map[targetKey]*target
	// inUse has the targets by service.
	inUse fairshare.Table[string, *target]
}

type targetKey struct{ service, name string }

// target is a target with its own name.
type target struct {
	key targetKey
	// used is the Unix time of the last call.
	used int64
	// gone is true after an eviction.
	gone bool
}

func newTargets(most int) *targets {
	t := &targets{most: most, byKey: map[targetKey]*target{}}
	t.inUse.Kept = math.MaxInt // evict the longest idle one of all services
	t.inUse.Used = func(x *target) int64 { return x.used }
	return t
}

// use returns the target with a name, or nil if there are too many.
func (t *targets) use(service, name string, now int64) *target {
	key := targetKey{service, name}
	if x := t.byKey[key]; x != nil {
		return x
	}
	// Evict before the decision, so a service may replace its idle targets.
	for x := t.inUse.First(); x != nil && now-x.Value.used > idleAfter; x = t.inUse.First() {
		t.inUse.Remove(x)
		delete(t.byKey, x.Value.key)
		x.Value.gone = true
	}
	// The second bound shares the table between services. It applies only to small tables and to many services.
	own := t.inUse.Amount(service)
	if own >= maxTargets || !fairshare.MayHave(own, t.inUse.Len(), t.most) {
		return nil
	}
	x := &target{key: key, used: now}
	t.byKey[key] = x
	t.inUse.Add(service, 1, x)
	return x
}
