package accesslog_test

import (
	"fmt"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

func ExampleNginx() {
	f, err := accesslog.Nginx(`$remote_addr [$time_local] "$request" $status ${request_time}s`)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := f.NewParser(nil)
	var r accesslog.Record
	for _, line := range []string{
		`10.0.0.1 [17/May/2015:12:05:03 +0200] "GET /cart HTTP/1.1" 200 0.042s`,
		`10.0.0.1 [31/Feb/2015:12:05:03 +0200] "GET /cart HTTP/1.1" 200 0.042s`,
	} {
		if err := p.Parse([]byte(line), &r); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s %s: %d after %s, at the %s of %s\n", r.Method, r.Target, r.Status, r.Duration, r.Stamp, r.Time)
	}
	_, err = accesslog.Nginx(`$remote_addr$request_time $time_local`)
	fmt.Println(err)
	// Output:
	// GET /cart: 200 after 42ms, at the end of 2015-05-17 10:05:03 +0000 UTC
	// the time ($time_local) is not a time like 17/May/2015:10:05:03 +0000
	// the log format "$remote_addr$request_time $time_local" cannot be read: it has no status ($status; %>s)
	// $remote_addr and $request_time have no text between them, at column 13
}
