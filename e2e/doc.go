// Package e2e tests windowstat against the servers that read it: Prometheus 3.15, Prometheus 2.42 and VictoriaMetrics
// 1.150, the real ones, running on loopback.
//
//	cd e2e && go test -v -timeout 20m ./...
//
// The first run installs the servers into windowstat-e2e below the user's cache directory, which takes some minutes and
// needs gcc, a network, and Debian's apt for Prometheus 2.42; later runs find them there and take some two minutes. A
// server that cannot be installed or started fails the test.
//
// The package is a module of its own, so that who imports the SDK sees nothing of it.
package e2e
