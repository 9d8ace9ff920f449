// Package top shows what an endpoint of windowstat counts, second by second, in a terminal ([Run]) or as text ([Once]).
//
// It requests the last second from the per-second page, at the beginning the ten minutes before, and the seconds that it
// missed; of thousands of resources it keeps a minute only. It uses no cursor, so it takes nothing from Prometheus or
// VictoriaMetrics. All that comes from the endpoint is bounded, and cleaned before it reaches the terminal.
package top
