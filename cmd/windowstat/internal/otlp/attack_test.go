package otlp

import "testing"

func checkNothingHeld(t *testing.T, h *handler) {
	t.Helper()
	if n, bytes := h.bodies.requests.Held(), h.bodies.memory.Held(); n+bytes != 0 {
		t.Errorf("%d requests and %d bytes are still held", n, bytes)
	}
}
