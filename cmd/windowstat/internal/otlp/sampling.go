package otlp

import (
	"bytes"
	"strconv"
)

// maxWeight is the most calls that a span stands for. A threshold that says more is a mistake or an attack, and not believed.
const maxWeight = 1 << 20

// weight returns how many calls a span stands for, as the threshold of its sampler in OpenTelemetry's member of the tracestate
// tells: ot=th:c is a span in four. Without a threshold that can be believed it is 1, and not sampled.
func weight(state []byte) (w float64, sampled bool) {
	for member := range bytes.SplitSeq(state, []byte(",")) {
		values, ok := bytes.CutPrefix(bytes.TrimSpace(member), []byte("ot="))
		if !ok {
			continue
		}
		for v := range bytes.SplitSeq(values, []byte(";")) {
			if digits, ok := bytes.CutPrefix(v, []byte("th:")); ok {
				return ofThreshold(string(digits))
			}
		}
	}
	return 1, false
}

// ofThreshold is the weight of a threshold: up to 14 digits in hex, of a fraction that is dropped.
func ofThreshold(digits string) (w float64, sampled bool) {
	const most = 14
	if len(digits) > most {
		return 1, false
	}
	t, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 1, false
	}
	const all = 1 << (4 * most)
	dropped := t << (4 * (most - len(digits)))
	if w = all / float64(all-dropped); w > maxWeight {
		return 1, false
	}
	return w, true
}
