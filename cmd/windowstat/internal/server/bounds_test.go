package server

import "testing"

// The connections of clients and pages leave files for logs and pushes.
func TestConnectionsFitIntoOpenFiles(t *testing.T) {
	for _, tc := range []struct{ files, clients, pages int }{
		{20_000, 9840, 256}, {1024, 416, 128}, {256, 80, 32}, {80, 3, 10}, {64, 0, 8},
	} {
		if got := maxConns(tc.files); got != tc.clients || PageConns(tc.files) != tc.pages {
			t.Errorf("%d files: %d clients and %d on the pages, want %d and %d",
				tc.files, got, PageConns(tc.files), tc.clients, tc.pages)
		}
	}
}
