package bench

import (
	"context"

	"github.com/windowstat/windowstat/collector"
)

// newWindowstat keeps a handle for each resource. windowstat itself reads the clock twice.
func newWindowstat(names []string) (Recorder, error) {
	_, list, err := resources(names)
	return Recorder{
		Call: func(i int) {
			e := list[i].Enter()
			e.Exit(nil)
		},
		Warm: true,
	}, err
}

// newWindowstatByName finds the resource by name for each call, as newClassicByLabel does.
func newWindowstatByName(names []string) (Recorder, error) {
	c, _, err := resources(names)
	return Recorder{
		Call: func(i int) {
			e := c.Resource(names[i]).Enter()
			e.Exit(nil)
		},
		Warm: true,
	}, err
}

// newWindowstatDo records a function, and therefore also detects panics.
func newWindowstatDo(names []string) (Recorder, error) {
	_, list, err := resources(names)
	work := func() error { return nil }
	return Recorder{
		Call: func(i int) {
			if err := list[i].Do(work); err != nil {
				panic(err)
			}
		},
		Warm: true,
	}, err
}

// newWindowstatContext enters through a context, at the top of a chain, with all options that a server passes: the
// origin, the entrance, and that the call is inbound.
func newWindowstatContext(names []string) (Recorder, error) {
	c, _, err := resources(names)
	return chain(c, context.Background(), names), err
}

// newWindowstatNested is newWindowstatContext below an entry that remains in flight.
func newWindowstatNested(names []string) (Recorder, error) {
	c, err := collector.New(collector.Options{MaxResources: len(names) + 1})
	if err != nil {
		return Recorder{}, err
	}
	ctx, _, err := c.Enter(context.Background(), "top", collector.Origin("web"),
		collector.Entrance("http"), collector.Inbound())
	return chain(c, ctx, names), err
}

// chain enters below ctx.
func chain(c *collector.Collector, ctx context.Context, names []string) Recorder {
	return Recorder{
		Call: func(i int) {
			_, e, err := c.Enter(ctx, names[i], collector.Origin("web"),
				collector.Entrance("http"), collector.Inbound())
			if err != nil {
				panic(err)
			}
			e.Exit(nil)
		},
		Warm: true,
	}
}

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
