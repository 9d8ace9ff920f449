module github.com/windowstat/windowstat

go 1.25.0

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/prometheus/client_golang v1.24.1 // indirect
	github.com/prometheus/exporter-toolkit v0.20.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/urfave/cli/v2 v2.27.7 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
)
