package httpstat

import (
	"strings"
	"unicode/utf8"
)

// Count is Name and then Learn, for a call that has ended, such as one of a log. Names whose path is known cost a fraction of the two.
func (n *Names) Count(plain, client string, status int) (name string, s Standing) {
	if n.given[plain] {
		return plain, Given
	}
	now := n.opts.Now().Unix()
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kept[plain]
	if k == nil || k.changes != n.places.changes {
		k = n.keep(plain)
	}
	if k == nil {
		name, s = n.name(plain, client, now)
		if Success(status) {
			n.learn(plain, client, now)
		}
		return name, s
	}
	x := n.earned.use(plain, client, now)
	if x != nil {
		s = Earned
	}
	switch {
	case !Success(status):
	case x == nil || !n.places.again(k):
		n.learn(plain, client, now)
	default:
		x.calls = min(x.calls+1, maxCount)
	}
	return plain, s
}

// keptName is a name of which all values are kept apart, so that it is its plain name while none of them loses its place.
type keptName struct {
	values  []*pathValue
	changes int // of the places, when it was found
}

// keep remembers a name if all values of its path are kept apart; nil if not.
func (n *Names) keep(plain string) *keptName {
	delete(n.kept, plain)
	values, ok := n.places.kept(plain)
	if !ok {
		return nil
	}
	if len(n.kept) >= remembered*n.opts.MaxNames {
		clear(n.kept)
	}
	k := &keptName{values, n.places.changes}
	n.kept[strings.Clone(plain)] = k
	return k
}

// kept returns the values of a path if all of them are kept apart.
func (p *places) kept(plain string) (values []*pathValue, ok bool) {
	at := p.root
	_, path, more := strings.Cut(plain, "/")
	if path == "" || len(plain) > longestKept || !utf8.ValidString(plain) {
		return nil, false
	}
	for more {
		var value string
		if value, path, more = strings.Cut(path, "/"); at == nil {
			return nil, false
		}
		if v := at.values[value]; v != nil {
			values, at = append(values, v), v.below
		} else if at = at.fixed[value]; !fixedValue(value) || at == nil && more {
			return nil, false
		}
	}
	return values, true
}

// longestKept is the length of the longest name that is kept, of which collector.CleanName cuts nothing off.
const longestKept = 100

// again counts a call that was answered with success; it is false, and counts nothing, when all counts are to be halved.
func (p *places) again(k *keptName) bool {
	if p.seen+1 >= halveEvery {
		return false
	}
	p.seen++
	for _, v := range k.values {
		if v.calls < maxCount {
			v.calls++
		}
	}
	return true
}
