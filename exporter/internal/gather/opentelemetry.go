package gather

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// conventions has the families of OpenTelemetry's semantic conventions.
type conventions struct {
	http, active, rpc *table.Family // the histograms are nil if response times are unknown
}

// newConventions returns the families for a Collector.
func newConventions(c *collector.Collector) *conventions {
	all := &conventions{}
	for _, f := range table.OpenTelemetry() {
		switch {
		case f.Name == table.HTTPActive:
			all.active = &f
		case c.DurationsUnknown():
		case f.Name == table.HTTPDuration:
			all.http = &f
		case f.Name == table.RPCDuration:
			all.rpc = &f
		}
	}
	return all
}

// families returns the families that exist.
func (c *conventions) families() []*table.Family {
	return slices.DeleteFunc(
		[]*table.Family{c.http, c.active, c.rpc}, func(f *table.Family) bool { return f == nil },
	)
}

// conventionSeries identifies a series of the conventions: its family, and the values of the family's labels.
type conventionSeries struct {
	family *table.Family
	values [5]string
}

// inbound passes inbound calls to the sink under the names of the conventions. The calls of a resource come from the
// snapshot that has its other metrics, so both are equal to the call.
//
// Several resources may have the same labels, such as routes of two hosts. Their series are added, and passed to the
// sink after all resources. All other series are passed immediately, because a histogram takes some 4 KiB.
type inbound struct {
	*conventions
	to     Sink
	shared map[operation]int // number of resources of an operation, and of an RPC
	merged map[conventionSeries]*merged
	order  []*merged // of the first resource of each
}

// merged is a series of several resources.
type merged struct {
	conventionSeries
	began     time.Time
	active    int64
	histogram node.Histogram
}

// newInbound returns the inbound of one scrape, or nil if the conventions are off.
func newInbound(c *conventions, to Sink, resources []*collector.Resource) *inbound {
	if c == nil {
		return nil
	}
	in := &inbound{
		conventions: c, to: to,
		shared: make(map[operation]int, 2*len(resources)),
		merged: map[conventionSeries]*merged{},
	}
	for _, r := range resources {
		o := operationOf(r.Name())
		in.shared[o]++
		in.shared[operation{rpc: o.rpc}]++
	}
	return in
}

// add passes the calls of a resource to the sink, or merges them.
func (in *inbound) add(r *collector.Resource, by *node.Codes, began time.Time) {
	o := operationOf(r.Name())
	p := o.protocol(r, by)
	shared := in.shared[o] > 1
	used := by.InFlight() > 0
	for code, h := range by.Histograms() {
		used = true
		of := protocolOf(code)
		if of == noProtocol {
			of = p
		}
		switch {
		case of == httpProtocol && in.http != nil:
			in.histogram(in.httpSeries(&o, code), shared, began, h)
		case of == grpcProtocol && in.rpc != nil:
			in.histogram(in.rpcSeries(&o, code), in.shared[operation{rpc: o.rpc}] > 1, began, h)
		}
	}
	if p != httpProtocol || !used {
		return
	}
	s := conventionSeries{in.active, [5]string{o.method, o.route}}
	if shared {
		in.merge(s, began).active += by.InFlight()
		return
	}
	s.labels(in.to, began)
	in.to.Sample(in.active, float64(by.InFlight()))
}

// flush passes the merged series to the sink.
func (in *inbound) flush() {
	for _, m := range in.order {
		m.labels(in.to, m.began)
		if m.family == in.active {
			in.to.Sample(in.active, float64(m.active))
		} else {
			in.to.Distribution(m.family, &m.histogram, nil)
		}
	}
}

// histogram passes a histogram to the sink, or adds it to the series of the other resources with these labels.
func (in *inbound) histogram(s conventionSeries, shared bool, began time.Time, h *node.Histogram) {
	if shared {
		in.merge(s, began).histogram.Add(h)
		return
	}
	s.labels(in.to, began)
	in.to.Distribution(s.family, h, nil)
}

// merge returns the merged series of s, and creates it if necessary.
func (in *inbound) merge(s conventionSeries, began time.Time) *merged {
	m := in.merged[s]
	if m == nil {
		m = &merged{conventionSeries: s, began: began}
		in.merged[s] = m
		in.order = append(in.order, m)
	}
	if began.Before(m.began) {
		m.began = began
	}
	return m
}

// labels passes the labels of the series to the sink.
func (s *conventionSeries) labels(to Sink, began time.Time) {
	names := s.family.Labels
	to.Labels(names, s.values[:len(names)], began)
}

// httpSeries returns the series of requests that ended with a code. The values follow the order of the family's
// labels.
func (in *inbound) httpSeries(o *operation, code node.Code) conventionSeries {
	status, failed := collector.CodeName(code), ""
	if protocolOf(code) == httpProtocol && code >= 500 {
		failed = status
	}
	return conventionSeries{in.http, [5]string{failed, o.method, status, o.route}}
}

// rpcSeries returns the series of gRPC calls that ended with a code.
func (in *inbound) rpcSeries(o *operation, code node.Code) conventionSeries {
	status, errorType := "", ""
	if code != 0 {
		var failed bool
		if status, failed = grpcStatus(code); failed {
			errorType = status
		}
	}
	return conventionSeries{in.rpc, [5]string{errorType, o.rpc, status, status, grpcEntrance}}
}
