package sentinelstat

import (
	"strings"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/core/system"
)

// reason describes why a call of a resource was refused, in a few words that do not change with the call: the kind of the
// rule, and which one, as far as that is to be had.
func reason(resource string, err *base.BlockError) (words string) {
	// Sentinel lets a call through if a slot panics: a rule whose String method panics must not do that.
	defer func() { _ = recover() }()
	words = strings.TrimPrefix(err.BlockType().String(), "BlockType")
	if name := ruleName(err.TriggeredRule()); name != "" && name != resource {
		words += " " + name
	}
	return words
}

// ruleName is the rule's ID, or else what it is for; empty if there is no rule.
func ruleName(rule base.SentinelRule) (name string) {
	switch r := rule.(type) {
	case nil:
		return ""
	case *flow.Rule:
		name = r.ID
	case *isolation.Rule:
		name = r.ID
	case *circuitbreaker.Rule:
		name = r.Id
	case *hotspot.Rule:
		name = r.ID
	case *system.Rule:
		name = r.ID
	}
	if name == "" {
		name = rule.ResourceName()
	}
	return name
}
