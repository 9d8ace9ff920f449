package sentinelstat_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/flow"
)

// sometimes is a slot that panics for calls with a flag. A slot with order 0 panics in Check, and a slot with another
// order panics in OnEntryPassed.
type sometimes struct{ order uint32 }

func (s sometimes) Order() uint32 { return s.order }

func (s sometimes) OnEntryPassed(ctx *base.EntryContext) {
	if ctx.Input.Flag != 0 && s.order != 0 {
		panic("sometimes")
	}
}

func (s sometimes) OnEntryBlocked(*base.EntryContext, *base.BlockError) {}
func (s sometimes) OnCompleted(*base.EntryContext)                      {}

func (s sometimes) Check(ctx *base.EntryContext) *base.TokenResult {
	if ctx.Input.Flag != 0 && s.order == 0 {
		panic("sometimes")
	}
	return nil
}

// tally counts the calls that the callers made, and the results of these calls.
type tally struct{ calls, pass, block, exception atomic.Int64 }

// Many goroutines call several resources, in batches, with errors, with rules that refuse some calls, and with slots
// that panic. All counts equal the counts of the callers.
func TestEveryCallIsAPassOrABlock(t *testing.T) {
	const workers, resources = 8, 4
	calls := 5000
	if testing.Short() {
		calls = 500
	}
	c, chain := newChain(t)
	chain.AddRuleCheckSlot(sometimes{0})
	chain.AddStatSlot(sometimes{9000})
	name := func(i int) string { return fmt.Sprint("stress ", i) }
	for i := range resources - 1 { // the last resource has no rule
		allow(t, name(i), flow.Rule{Threshold: float64(2000 * i), StatIntervalInMs: 1000})
	}
	var seen [resources]tally
	work := func(random *rand.Rand) {
		for range calls {
			i, n, flag := random.IntN(resources), 1+random.Int64N(3), int32(0)
			if random.IntN(100) == 0 {
				flag = 1
			}
			saw := &seen[i]
			saw.calls.Add(n)
			e, blocked := sentinel.Entry(name(i), sentinel.WithSlotChain(chain), sentinel.WithBatchCount(uint32(n)),
				sentinel.WithTrafficType(base.Inbound), sentinel.WithFlag(flag))
			switch {
			case blocked != nil:
				saw.block.Add(n)
				continue
			case random.IntN(10) == 0:
				sentinel.TraceError(e, errFailed)
				saw.exception.Add(n)
			case flag != 0:
				saw.exception.Add(n)
			}
			saw.pass.Add(n)
			e.Exit()
			e.Exit()
		}
	}

	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			for i := range resources {
				if s := c.Resource(name(i)).Snapshot(nil); s.InFlight < 0 || s.InFlight > workers ||
					s.Total.Complete > s.Total.Pass {
					t.Errorf("%s: %s", name(i), counts(c, name(i)))
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() { work(rand.New(rand.NewPCG(uint64(w), 1))) })
	}
	all.Wait()
	close(stop)
	<-watched

	var pass, block int64
	for i := range resources {
		saw := &seen[i]
		want(t, c, name(i), fmt.Sprintf("%d pass, %d block, %d complete, %d exception, 0 in flight",
			saw.pass.Load(), saw.block.Load(), saw.pass.Load(), saw.exception.Load()))
		if saw.pass.Load()+saw.block.Load() != saw.calls.Load() {
			t.Errorf("%s: the test lost calls", name(i))
		}
		pass, block = pass+saw.pass.Load(), block+saw.block.Load()
	}
	in := c.Inbound().Snapshot(nil)
	if in.Total.Pass != pass || in.Total.Block != block || in.Total.Complete != pass || in.InFlight != 0 {
		t.Errorf("inbound: %+v; want %d pass, %d block", in.Total, pass, block)
	}
	if pass == 0 || block == 0 {
		t.Errorf("%d passed and %d were refused: not much of a test", pass, block)
	}
	t.Logf("%d passed, %d were refused", pass, block)
}
