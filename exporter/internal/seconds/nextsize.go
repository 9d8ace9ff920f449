package seconds

import "github.com/windowstat/windowstat/node"

// nextSize is the size of each second from the log: its rows tell who is still.
type nextSize struct {
	one    rowSize
	always Size           // of the known resources, and of the total
	told   map[still]Size // what those add that are not still, by the second in which they were last active
}

// row takes notice of a row of a resource.
func (n *nextSize) row(resource string, x *series, m *node.MetricNode) {
	was := x.latest // a key that is not known, or not any more, is never read
	if x.latest.see(m); x.latest == was {
		return
	}
	whole, always := n.one.whole.named(resource), n.one.always.named(resource)
	if was == unknown {
		n.always = n.always.Add(always)
	}
	n.told[was] = n.told[was].less(whole).Add(always)
	n.told[x.latest] = n.told[x.latest].Add(whole).less(always)
}

// at returns the size of a second after all its rows, and no later ones, were noticed.
func (n *nextSize) at(unix int64) Size {
	sum := n.always
	for active, size := range n.told {
		if active.is(unix) {
			delete(n.told, active) // for ever
			continue
		}
		sum = sum.Add(size)
	}
	return sum
}

func (s Size) less(o Size) Size { return Size{s.Samples - o.Samples, s.Bytes - o.Bytes} }
