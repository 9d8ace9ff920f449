// Package copies does what go vet must complain about: it copies what must not be copied.
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
