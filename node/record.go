package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Record counts a call that is over, at the reading now, as one change: n passes, and n completions that took rt each, failed
// or not, with a code, of which 0 is none. Nothing of it was in flight. An n below 1 counts as 1, a negative rt as 0. pass is
// called with the line time at which the bucket starts that it counts in, as the decide of [Statistic.EnterIf] is. Record
// reports false if the statistic is retired, and counts nothing then.
func (s *Statistic) Record(now leap.Reading, rt time.Duration, n int64, failed bool, code Code, pass func(bucket time.Duration)) bool {
	n, rt = max(n, 1), max(rt, 0)
	st := s.enter(now)
	defer st.unlock()
	if st.end.Load() == closed {
		return false
	}
	pass(s.at)
	st.open.Pass = saturate(st.open.Pass, n)
	st.open.complete(rt, n, failed)
	st.count(st.shape.layout.cell(rt), n)
	if code != 0 {
		st.rt.codes.add(code, n)
	}
	return true
}
