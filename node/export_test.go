package node

// Stripes is how many stripes the statistic has, the first included.
func (s *Statistic) Stripes() int {
	if more := s.more.Load(); more != nil {
		return 1 + len(more.list)
	}
	return 1
}

// Grow adds stripes, as contention does.
func (s *Statistic) Grow() { s.grow() }
