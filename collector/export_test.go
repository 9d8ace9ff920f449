package collector

import "time"

// SealAt is Seal with a reading of the clock that was taken some time ago.
func (c *Collector) SealAt(now time.Duration) Moment { return c.seal(now) }
