// Package exporter holds the catalogue: the one table of all metrics that windowstat exposes. The packages below it
// are the ways out; each takes names, types and help from here, and README and dashboards are tested against it.
package exporter
