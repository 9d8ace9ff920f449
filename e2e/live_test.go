package e2e

import (
	"context"
	"testing"
)

// TestLive has a browser look at the live page.
func TestLive(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	open := make(chan struct{}, 6) // more pages than that at once take longer than each waits
	for name, test := range map[string]func(*testing.T, context.Context){
		"numbers": liveNumbers, "restart": liveRestart, "columns": liveColumns, "hostile": liveHostile, "eaten": liveEaten, "full": liveFull, "keyboard": liveKeyboard, "held": liveHeld, "looks": liveLooks, "many": liveMany, "address": liveAddress, "zoom": liveZoom, "cursor": liveCursor, "trouble": liveTrouble, "accessible": liveAccessible, "recorded": liveRecorded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open <- struct{}{}
			defer func() { <-open }()
			test(t, browser)
		})
	}
}
