// Package deploy has no code. Its tests read the examples in this directory with the types and tools of Kubernetes, the
// Prometheus operator, systemd and image builders. It is a separate module, so that other modules do not need these
// dependencies.
package deploy
