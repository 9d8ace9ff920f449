package otlp

import (
	"regexp"
	"strconv"
)

// threshold matches the sampling threshold in OpenTelemetry's member of a tracestate: up to 14 hexadecimal digits, the
// dropped fraction of all spans.
var threshold = regexp.MustCompile(`(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,\s]|$)`)

// maxWeight is the maximum number of calls that a span represents. A threshold with a larger weight is a mistake or an
// attack, and is ignored.
const maxWeight = 1 << 20

// weight returns the number of calls that a span with the tracestate represents: ot=th:c means one span in four.
// Without a valid threshold the weight is 1, and the span does not count as sampled.
func weight(state []byte) (w float64, sampled bool) {
	// Most spans have no tracestate, and the expression is slow.
	if len(state) == 0 {
		return 1, false
	}
	found := threshold.FindSubmatch(state)
	if found == nil {
		return 1, false
	}
	// Missing digits are zeros at the end. The kept fraction is 1 - t/all, and a span represents its reciprocal.
	const digits, all = 14, 1 << (4 * 14)
	t, _ := strconv.ParseUint(string(found[1]), 16, 64) // the expression matches only valid numbers
	w = all / float64(all-t<<(4*(digits-len(found[1]))))
	if w > maxWeight {
		return 1, false
	}
	return w, true
}
