module github.com/windowstat/windowstat/collector/echov5stat

go 1.25.0

replace github.com/windowstat/windowstat => ../..

require (
	github.com/labstack/echo/v5 v5.4.4
	github.com/windowstat/windowstat v0.0.0-00010101000000-000000000000
)

require golang.org/x/time v0.15.0 // indirect
