package push_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// A short job sends all its counts when it ends, including the open second.
func Example() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	pusher, err := push.New(c, push.Options{
		URL:    server.URL + "/api/v1/write",
		Format: push.RemoteWrite,
		Labels: map[string]string{"job": "nightly", "instance": "worker-7"},
	})
	if err != nil {
		panic(err)
	}
	stop := pusher.Start()
	_ = c.Resource("import").Do(func() error { return nil })
	fmt.Println(stop(), requests > 0)
	// Output: <nil> true
}
