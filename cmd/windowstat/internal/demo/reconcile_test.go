package demo

import (
	"strings"
	"testing"
)

// A difference of any observer in any count is found.
func TestDifferentCounts(t *testing.T) {
	right := func() map[string]counts { return map[string]counts{"a": {10, 2, 9, 3}, "b": {1, 0, 1, 0}} }
	agree := reconciliation{sent: right(), counted: right(), scraped: right(), logged: right()}
	var out strings.Builder
	if !agree.print(&out) || strings.Contains(out.String(), "DIFFERENT") {
		t.Errorf("equal counts differ:\n%s", out.String())
	}
	for name, wrong := range map[string]map[string]counts{
		"pass":           {"a": {11, 2, 9, 3}, "b": {1, 0, 1, 0}},
		"block":          {"a": {10, 1, 9, 3}, "b": {1, 0, 1, 0}},
		"complete":       {"a": {10, 2, 8, 3}, "b": {1, 0, 1, 0}},
		"exception":      {"a": {10, 2, 9, 4}, "b": {1, 0, 1, 0}},
		"missing":        {"a": {10, 2, 9, 3}},
		"one more":       {"a": {10, 2, 9, 3}, "b": {1, 0, 1, 0}, "c": {1, 0, 1, 0}},
		"nothing at all": nil,
	} {
		for observer, set := range map[string]func(*reconciliation){
			"sent":    func(b *reconciliation) { b.sent = wrong },
			"counted": func(b *reconciliation) { b.counted = wrong },
			"scraped": func(b *reconciliation) { b.scraped = wrong },
			"logged":  func(b *reconciliation) { b.logged = wrong },
		} {
			b := reconciliation{sent: right(), counted: right(), scraped: right(), logged: right()}
			set(&b)
			if out.Reset(); b.print(&out) || !strings.Contains(out.String(), "DIFFERENT") {
				t.Errorf("%s wrong for %s:\n%s", name, observer, out.String())
			}
		}
	}
}
