package remote

import "github.com/windowstat/windowstat/exporter/internal/push"

// NewEncoder makes the encoder of requests.
func NewEncoder() push.Encoder { return new(encoder) }
