package remote

import (
	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/remotewrite"
)

// NewEncoder makes an encoder of requests.
func NewEncoder() push.Encoder { return remotewrite.Format.New() }
