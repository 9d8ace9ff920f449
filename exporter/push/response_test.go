package push

import (
	"net/http"
	"testing"
)

// Servers' original messages about duplicate and out-of-order samples are detected, and other messages are not.
func TestDuplicates(t *testing.T) {
	const (
		text = "text/plain; charset=utf-8"
		page = "text/html"
	)
	for _, tc := range []struct {
		server      string
		code        int
		contentType string
		body        string
		want        bool
	}{
		{"Prometheus", 400, text, "out of order sample\n", true},
		{"Prometheus 2.42", 400, text, "duplicate sample for timestamp\n", true},
		{
			"Prometheus 3.15", 400, text,
			"duplicate sample for timestamp 1700000000000; overrides not allowed: existing 1, new value 2\n", true,
		},
		{"Prometheus", 400, text, "out of bounds\n", false},
		{"Prometheus, out_of_order_time_window", 400, text, "too old sample\n", false},
		{"Prometheus", 400, text, "snappy: corrupt input\n", false},
		{
			"Mimir", 400, text,
			`failed pushing to ingester ingester-1: user=a: the sample has been rejected because ` +
				`another sample with a more recent timestamp has already been ingested and out-of-order ` +
				`samples are not allowed (err-mimir-sample-out-of-order). The affected sample has ` +
				`timestamp 2026-01-02T03:04:05Z and is from series {__name__="windowstat_persecond_pass"}`, true,
		},
		{
			"Mimir", 400, text,
			`failed pushing to ingester ingester-1: user=a: the sample has been rejected because ` +
				`another sample with the same timestamp, but a different value, has already been ingested ` +
				`(err-mimir-sample-duplicate-timestamp). The affected sample has timestamp ` +
				`2026-01-02T03:04:05Z and is from series {__name__="windowstat_persecond_pass"}`, true,
		},
		{
			"Mimir", 400, text,
			`user=a: the sample has been rejected because its timestamp is too old ` +
				`(err-mimir-sample-timestamp-too-old). The affected sample has timestamp ` +
				`2026-01-02T03:04:05Z and is from series {__name__="windowstat_persecond_pass"}`, false,
		},
		{"Mimir", 400, text, "per-user series limit of 150000 exceeded (err-mimir-max-series-per-user)", false},
		{
			"Cortex", 400, text,
			`user=a: err: out of order sample. timestamp=2026-01-02T03:04:05Z, ` +
				`series={__name__="windowstat_persecond_pass"}`, true,
		},
		{
			"Cortex", 400, text,
			`user=a: err: duplicate sample for timestamp. timestamp=2026-01-02T03:04:05Z, ` +
				`series={__name__="windowstat_persecond_pass"}`, true,
		},
		{
			"Cortex", 400, text,
			`user=a: err: out of bounds. timestamp=2026-01-02T03:04:05Z, ` +
				`series={__name__="windowstat_persecond_pass"}`, false,
		},
		{"Thanos", 409, text, "store locally for endpoint 127.0.0.1:12907: add 8 samples: out of order sample\n", true},
		{"Thanos", 409, text, "store locally for endpoint 127.0.0.1:12907: add 8 samples: out of bounds\n", false},
		{
			"a resource whose name is the message", 400, text,
			`user=a: err: out of bounds. timestamp=2026-01-02T03:04:05Z, series={resource="out of ` +
				`order sample"}`, false,
		},
		{"a proxy", 400, page, "<html><title>400 Bad Request</title></html>", false},
		{"a proxy with the message in a page", 400, page, "<html>out of order sample</html>", false},
		{"a proxy", 400, text, "", false},
		{"a limit", 429, text, "out of order sample", false},
		{"a broken server", 500, text, "out of order sample", false},
		{"success", 200, text, "out of order sample", false},
	} {
		header := http.Header{"Content-Type": {tc.contentType}}
		if got := judge(tc.code, header, []byte(tc.body), true) == unconfirmed; got != tc.want {
			t.Errorf("%s says %d %q: %t, want %t", tc.server, tc.code, tc.body, got, tc.want)
		}
	}
}
