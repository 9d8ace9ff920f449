package sentinelstat_test

import (
	"fmt"
	"os"
	"testing"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/sentinelstat"
)

// By default, Sentinel logs to the home directory and samples the machine every second; disable both.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sentinelstat")
	if err != nil {
		panic(err)
	}
	entity := config.NewDefaultConfig()
	entity.Sentinel.Log.Dir = dir
	entity.Sentinel.Log.Metric.FlushIntervalSec = 0
	entity.Sentinel.Stat.System = config.SystemStatConfig{}
	if err := sentinel.InitWithConfig(entity); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// newChain returns Sentinel's default chain with a slot for a new Collector.
func newChain(t testing.TB) (*collector.Collector, *base.SlotChain) {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chain := sentinel.BuildDefaultSlotChain()
	chain.AddStatSlot(sentinelstat.NewSlot(c))
	return c, chain
}

// enter makes a call that Sentinel must admit.
func enter(t testing.TB, chain *base.SlotChain, resource string, opts ...sentinel.EntryOption) *base.SentinelEntry {
	t.Helper()
	e, blocked := sentinel.Entry(resource, append(opts, sentinel.WithSlotChain(chain))...)
	if blocked != nil {
		t.Fatal(blocked)
	}
	return e
}

// refused makes a call that Sentinel must refuse.
func refused(t testing.TB, chain *base.SlotChain, resource string, opts ...sentinel.EntryOption) {
	t.Helper()
	if e, blocked := sentinel.Entry(resource, append(opts, sentinel.WithSlotChain(chain))...); blocked == nil {
		e.Exit()
		t.Fatalf("%s was admitted", resource)
	}
}

// counts returns the counts of a resource as text.
func counts(c *collector.Collector, resource string) string {
	s := c.Resource(resource).Snapshot(nil)
	return fmt.Sprintf("%d pass, %d block, %d complete, %d exception, %d in flight",
		s.Total.Pass, s.Total.Block, s.Total.Complete, s.Total.Exception, s.InFlight)
}

func want(t testing.TB, c *collector.Collector, resource, want string) {
	t.Helper()
	if got := counts(c, resource); got != want {
		t.Errorf("%s: %s; want %s", resource, got, want)
	}
}
