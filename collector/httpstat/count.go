package httpstat

import "github.com/windowstat/windowstat/collector"

// Known is a plain name that is counted again and again, for [Names.Count]. It remembers what it was last, for as long as that
// cannot have changed. Its zero value with a Plain is ready; it belongs to one Names.
type Known struct {
	Plain string

	name    string
	found   bool
	changes int          // of the places, when it was found
	kept    bool         // all values are kept apart
	values  []*pathValue // these
}

// Count is Name and then Learn, for a call that has ended, such as one of a log. It costs a fraction of the two.
func (n *Names) Count(k *Known, client string, status int) (name string, s Standing) {
	if n.given[k.Plain] {
		return k.Plain, Given
	}
	now := n.opts.Now().Unix()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !k.found || k.changes != n.places.changes {
		n.find(k)
	}
	name = k.name
	x := n.earned.use(name, client, now)
	if x != nil {
		s = Earned
	}
	switch {
	case !Success(status):
	case x == nil || !k.kept || !n.places.again(k.values):
		n.learn(k.Plain, client, now)
	default:
		x.calls = min(x.calls+1, maxCount)
	}
	return name, s
}

// find finds the name of a plain one, which is that until the places change.
func (n *Names) find(k *Known) {
	p := n.places
	k.found, k.kept, k.changes, k.values = true, true, p.changes, k.values[:0]
	k.name = collector.CleanName(p.name(k.Plain, func(at place, before []byte, value string) string {
		if v := at[value]; v != nil {
			k.values = append(k.values, v)
		} else {
			k.kept = false
		}
		return p.show(at, before, value)
	}))
	k.kept = k.kept && k.name == k.Plain
}

// again counts a call that was answered with success; it is false, and counts nothing, when all counts are to be halved.
func (p *places) again(values []*pathValue) bool {
	if p.seen+1 >= halveEvery {
		return false
	}
	p.seen++
	for _, v := range values {
		v.add(1)
	}
	return true
}
