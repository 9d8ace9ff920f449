// Package deploy has no code, only tests of the examples in this directory: that they are what Kubernetes, the Prometheus
// operator, systemd and builders of images read. It is a module of its own, so that nobody else gets what that needs.
package deploy
