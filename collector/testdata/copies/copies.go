// Package copies contains copies of values that must not be copied. go vet must report each copy.
package copies

import (
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

func entry(e collector.Entry) collector.Entry { return e }

func call(c *node.Call) node.Call {
	d := *c
	return d
}

func statistic(s *node.Statistic) {
	t := *s
	_ = &t
}
