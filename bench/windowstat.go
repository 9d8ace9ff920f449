package bench

import (
	"time"

	"github.com/windowstat/windowstat/collector"
)

// newWindowstat keeps a handle for each resource. Both clock readings are windowstat's own.
func newWindowstat(names []string) (Recorder, error) {
	_, list, err := resources(names)
	return Recorder{
		Call: func(i int) {
			e := list[i].Enter()
			e.Exit(nil)
		},
		Warm: warmUp,
	}, err
}

// newWindowstatByName looks the resource up for each call, as newClassicByLabel does.
func newWindowstatByName(names []string) (Recorder, error) {
	c, _, err := resources(names)
	return Recorder{
		Call: func(i int) {
			e := c.Resource(names[i]).Enter()
			e.Exit(nil)
		},
		Warm: warmUp,
	}, err
}

// newWindowstatDo records a function, which sees panics besides.
func newWindowstatDo(names []string) (Recorder, error) {
	_, list, err := resources(names)
	work := func() error { return nil }
	return Recorder{
		Call: func(i int) {
			if err := list[i].Do(work); err != nil {
				panic(err)
			}
		},
		Warm: warmUp,
	}, err
}

// warmUp is more than a second, after which a resource has its window of a minute.
const warmUp = 1100 * time.Millisecond

func resources(names []string) (*collector.Collector, []*collector.Resource, error) {
	c, err := collector.New(collector.Options{MaxResources: len(names)})
	if err != nil {
		return nil, nil, err
	}
	list := make([]*collector.Resource, len(names))
	for i, name := range names {
		list[i] = c.Resource(name)
	}
	return c, list, nil
}
