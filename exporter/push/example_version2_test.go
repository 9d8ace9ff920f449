package push_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// A job pushes by remote write 2.0. The server reads version 1.0 only, and receives it after the first response.
func ExampleFormat_version2() {
	versions := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		version := r.Header.Get("X-Prometheus-Remote-Write-Version")
		if versions[version] = true; version != "0.1.0" {
			w.WriteHeader(http.StatusUnsupportedMediaType)
		}
	}))
	defer server.Close()
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	pusher, err := push.New(c, push.Options{
		URL:    server.URL + "/api/v1/write",
		Format: push.RemoteWrite2,
		Labels: map[string]string{"job": "nightly", "instance": "worker-7"},
	})
	if err != nil {
		panic(err)
	}
	stop := pusher.Start()
	_ = c.Resource("import").Do(func() error { return nil })
	fmt.Println(stop(), versions)
	// Output: <nil> map[0.1.0:true 2.0.0:true]
}
