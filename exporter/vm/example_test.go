package vm_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/VictoriaMetrics/metrics"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/vm"
)

// Windowstat adds its totals to the other metrics of a set.
func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	writer, err := vm.New(c, vm.Options{})
	if err != nil {
		panic(err)
	}
	set := metrics.NewSet()
	set.RegisterMetricsWriter(writer.WriteMetrics)
	set.NewCounter("orders_total").Inc()
	_ = c.Resource("checkout").Do(func() error { return nil })

	var page bytes.Buffer
	set.WritePrometheus(&page)
	for line := range strings.Lines(page.String()) {
		if strings.HasPrefix(line, "orders_total") || strings.HasPrefix(line, "windowstat_pass_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// orders_total 1
	// windowstat_pass_total{resource="checkout"} 1
}
