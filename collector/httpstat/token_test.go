package httpstat_test

import (
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// Each row tests the boundary of one rule with two segments that differ little. The segment word is not an identifier,
// so it stays in the name. The segment token is an identifier, so it does not.
func TestIdentifierBoundaries(t *testing.T) {
	for _, tc := range []struct {
		rule, word, token string
	}{
		{"a hash has 8 characters", "deadbe1", "deadbee1"},
		{"a hash has a digit", "deadbeef", "deadbee0"},
		{"a token has 16 characters", "mnopqrstuvwxy12", "mnopqrstuvwxyz12"},
		{"a token has 2 digits", "summersaleoffer2", "summersaleoffe12"},
		{"a token has 1 separator", "summer-sale_of12", "summer-saleoff12"},
		{
			"a UUID has its separators in their places", "2c5ea4c04-067-11e9-8bad-9b1deb4d3b7d",
			"2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d",
		},
		{"a UUID has no other letters", "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7g", "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7f"},
		{"a word has 48 bytes", strings.Repeat("x", 48), strings.Repeat("x", 49)},
		{"a number has digits alone", "4.7", "47"},
	} {
		if got := httpstat.CollapsePath("/x/"+tc.word, 0); got != "/x/"+tc.word {
			t.Errorf("%s: the word %s is %s", tc.rule, tc.word, got)
		}
		if got := httpstat.CollapsePath("/x/"+tc.token, 0); got != "/x/:id" {
			t.Errorf("%s: the token %s is %s", tc.rule, tc.token, got)
		}
	}
}
