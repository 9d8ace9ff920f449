package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// list returns a table that is sorted by a column, with the highest value first. Its rows come from queries made by
// [instant].
func list(id uint32, title, sortedBy, description string) *table.PanelBuilder {
	return table.NewPanelBuilder().
		Id(id).Title(title).
		Description(description).
		Datasource(source).
		Thresholds(plain()).
		OverrideByFieldType("number", blank).
		SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(sortedBy).Desc(true),
		}).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"}))
}

// instant returns the query of a table for the values at the end of the time shown. The query at the given position has
// the column Value #A, Value #B, and so on.
func instant(position int, expr string) *prometheus.DataqueryBuilder {
	return query{expr: expr, instant: true}.target(position).Format(prometheus.PromQueryFormatTable)
}
