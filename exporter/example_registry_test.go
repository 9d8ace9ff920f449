package exporter_test

import (
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// Only /metrics, in an existing registry: without package exporter the binary is small.
func Example_registry() {
	registry := prometheus.NewRegistry()

	// begin registry
	c, err := collector.New(collector.Options{})
	if err != nil {
		log.Fatal(err)
	}
	metrics, err := prom.New(c, prom.Options{})
	if err != nil {
		log.Fatal(err)
	}
	registry.MustRegister(metrics)
	query := c.Resource("db: load user") // keep the handle
	err = query.Do(func() error { return nil })
	// end registry
	if err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "windowstat_complete_total" {
			fmt.Println(f.GetName(), f.Metric[0].Counter.GetValue())
		}
	}
	// Output: windowstat_complete_total 1
}
