package e2e

import (
	"context"
	"testing"
)

// TestLive checks the live page in a browser.
func TestLive(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	open := make(chan struct{}, 6) // with more open pages, each takes longer than its timeout
	for name, test := range map[string]func(*testing.T, context.Context){
		"numbers": liveNumbers, "restart": liveRestart, "columns": liveColumns, "hostile": liveHostile,
		"eaten": liveEaten, "full": liveFull, "keyboard": liveKeyboard, "held": liveHeld, "looks": liveLooks,
		"many": liveMany, "address": liveAddress, "zoom": liveZoom, "cursor": liveCursor, "trouble": liveTrouble,
		"accessible": liveAccessible, "accessible in trouble": liveAccessibleTrouble, "widths": liveWidths,
		"recorded": liveRecorded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open <- struct{}{}
			defer func() { <-open }()
			test(t, browser)
		})
	}
}
