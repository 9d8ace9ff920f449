package collector

import "github.com/windowstat/windowstat/leap"

// SealAt is Seal with a reading of the clock that was taken some time ago.
func (c *Collector) SealAt(now leap.Reading) Moment { return c.seal(now) }
