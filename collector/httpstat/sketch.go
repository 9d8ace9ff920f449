package httpstat

import "math"

// sketch counts many values in little memory: a count-min sketch with conservative update. It may say more than there were,
// never less since it was halved. Of 65,536 values that came once it takes none for one that came four times, where one row of
// four times the memory takes up to nine. Its zero value is empty.
type sketch struct{ rows *[4][1 << 15]uint8 }

// count counts a value at a place, and returns how often it came.
func (s *sketch) count(place, value string) uint32 {
	if s.rows == nil {
		s.rows = new([4][1 << 15]uint8)
	}
	h := hash(hash(14695981039346656037, place)*31, value)
	h ^= h >> 29 // the low bits of FNV are the better ones
	step := h>>32 | 1
	var cells [4]*uint8
	least := uint8(math.MaxUint8)
	for i := range cells {
		cells[i] = &s.rows[i][(h+uint64(i)*step)%uint64(len(s.rows[i]))]
		least = min(least, *cells[i])
	}
	if least == math.MaxUint8 {
		return uint32(least)
	}
	for _, cell := range cells {
		*cell = max(*cell, least+1)
	}
	return uint32(least) + 1
}

// halve halves all counts.
func (s *sketch) halve() {
	if s.rows == nil {
		return
	}
	for i := range s.rows {
		for j := range s.rows[i] {
			s.rows[i][j] /= 2
		}
	}
}

// hash is FNV-1a: the same in every process, so that the same calls get the same names.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
