module github.com/windowstat/windowstat/collector/chistat

go 1.25.0

replace github.com/windowstat/windowstat => ../..

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/windowstat/windowstat v0.0.0-00010101000000-000000000000
)
