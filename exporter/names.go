package exporter

// Names that code refers to.
const (
	RT        = "rt_seconds"
	Blocks    = "block_total"
	BuildInfo = "build_info"

	CursorLag         = "cursor_lag_seconds"
	CursorDelivered   = "cursor_delivered_seconds_total"
	CursorUnconfirmed = "cursor_unconfirmed_seconds_total"
	CursorResent      = "cursor_resent_seconds_total"
	CursorLost        = "cursor_lost_seconds_total"
	CursorSaveErrors  = "cursor_save_errors_total"

	SamplerSeries  = "sampler_series"
	SamplerErrors  = "sampler_errors_total"
	SamplerMissed  = "sampler_missed_seconds_total"
	SamplerLeftOut = "sampler_left_out_series"

	PushLag       = "push_lag_seconds"
	PushSeconds   = "push_seconds_total"
	PushSamples   = "push_samples_total"
	PushBytes     = "push_bytes_total"
	PushRetries   = "push_retries_total"
	PushRefused   = "push_refused_samples_total"
	PushLost      = "push_lost_seconds_total"
	PushSucceeded = "push_last_success_timestamp_seconds"

	ScrapeDuration = "scrape_duration_seconds"
	ScrapeSamples  = "scrape_samples"
	ScrapeBytes    = "scrape_bytes"

	LogSeconds     = "metriclog_seconds_total"
	LogRows        = "metriclog_rows_total"
	LogErrors      = "metriclog_errors_total"
	LogLostSeconds = "metriclog_lost_seconds_total"
	LogLastSecond  = "metriclog_last_second_timestamp_seconds"

	ReplayLines = "replay_lines_total"
)
