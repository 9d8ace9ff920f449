package main

import (
	"fmt"
	"io"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

type summary struct{ rows, pass int64 }

func newSummary() *summary { return &summary{} }
func (s *summary) add(r metriclog.Row) {
	s.rows++
	if r.Resource == "__total_inbound_traffic__" {
		s.pass += r.Pass
	}
}
func (s *summary) write(w io.Writer) error { fmt.Fprintln(w, s.rows, s.pass); return nil }
