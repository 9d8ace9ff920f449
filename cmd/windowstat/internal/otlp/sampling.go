package otlp

import (
	"regexp"
	"strconv"
)

// threshold finds that of a sampler in OpenTelemetry's member of a tracestate: up to 14 digits in hex, of the fraction that is dropped.
var threshold = regexp.MustCompile(`(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,\s]|$)`)

// maxWeight is the most calls that a span stands for. A threshold that says more is a mistake or an attack, and not believed.
const maxWeight = 1 << 20

// weight returns how many calls a span stands for, as its tracestate tells: ot=th:c is a span in four. Without a threshold that can be
// believed it is 1, and not sampled.
func weight(state []byte) (w float64, sampled bool) {
	if len(state) == 0 {
		return 1, false
	}
	found := threshold.FindSubmatch(state)
	if found == nil {
		return 1, false
	}
	const digits, all = 14, 1 << (4 * 14)
	t, _ := strconv.ParseUint(string(found[1]), 16, 64) // it is one
	w = all / float64(all-t<<(4*(digits-len(found[1]))))
	if w > maxWeight {
		return 1, false
	}
	return w, true
}
