package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Options configures the proxy.
type Options struct {
	Telemetry telemetry.Options
	Naming    routes.Naming
	Bounds    server.Bounds // limits for clients; Proxies lists the trusted proxies, whose X-Forwarded headers are kept

	Upstream     *url.URL        // the service, see [ParseUpstream]
	Listen       string          // address for clients
	Timeout      time.Duration   // time that the upstream has to begin its response
	Exceptions   replay.Statuses // statuses that are exceptions
	Skip         routes.Set      // requests that are not counted
	OriginHeader string          // request header with the origin; empty for none

	// ShutdownDelay is the time between the end of ctx and the end of the listener. Clients are still served, and
	// /-/ready reports that the proxy is not ready.
	ShutdownDelay time.Duration
}

// Check validates the options, and sets the options that depend on several others. The error lists every invalid
// option.
func (o *Options) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "proxy", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if o.Upstream == nil {
		wrong("Upstream", "is required: the URL of the service, such as http://127.0.0.1:8000")
	}
	if o.Timeout <= 0 {
		wrong("Timeout", "%v is not positive", o.Timeout)
	}
	if o.ShutdownDelay < 0 {
		wrong("ShutdownDelay", "%v is negative", o.ShutdownDelay)
	}
	if o.OriginHeader != "" && !httpguts.ValidHeaderFieldName(o.OriginHeader) {
		wrong("OriginHeader", "%q is not a header's name, such as X-Client", o.OriginHeader)
	}
	errs = append(errs, o.Bounds.Fit(server.OpenFiles()), o.Naming.Check())
	o.Telemetry.Exporter.Collector.Given = o.Naming.Given()
	o.Naming.MaxResources = o.Telemetry.Exporter.Collector.MaxResources
	return errors.Join(append(errs, o.Telemetry.Check())...)
}

// Run serves until ctx ends and ShutdownDelay has passed, or until one of its servers fails.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	// An earned name is a name from a request that succeeded. Host identifies the client, so the limits on earned names
	// apply to each client.
	earned := o.Naming.Earned()
	earned.Host = o.client
	names, err := httpstat.NewNames(earned)
	if err != nil {
		return err
	}
	t, err := telemetry.Start(&o.Telemetry, stderr)
	if err != nil {
		return err
	}
	t.KeepNames(names)
	opts := []httpstat.Option{httpstat.Earn(names), httpstat.Exception(o.Exceptions.Has), httpstat.Skip(o.Skip.Match)}
	if o.OriginHeader != "" {
		opts = append(opts, httpstat.OriginHeader(o.OriginHeader))
	}
	h := httpstat.Handler(t.Collector, o.Naming.Name(), o.handler(t.Logger), opts...)
	// front serves clients. The pages of windowstat, such as /metrics, have their own server in t.
	front, err := server.Listen(o.Listen, h, t.Logger, o.Bounds)
	if err != nil {
		return errors.Join(fmt.Errorf("--proxy.listen-address: %w", err), t.Stop())
	}
	files := server.OpenFiles()
	t.Logger.Info("connections are bounded", "clients", o.Bounds.Conns, "of_a_host", o.Bounds.ConnsPerHost,
		"of_pages", server.PageConns(files), "open_files", files)
	fmt.Fprintf(stdout, "proxy       http://%s  in front of %s\n%s", front.Address(), o.Upstream, t.Banner)
	ctx = t.Ready(ctx, front)
	<-ctx.Done()
	// Wait for ShutdownDelay, so a load balancer sees that the proxy is not ready before the listener closes.
	select {
	case <-time.After(o.ShutdownDelay):
	case <-front.Ended.Done():
	case <-t.Pages.Ended.Done():
	}
	return errors.Join(front.Stop(), t.Stop())
}

// refused returns the status and the reason with which the proxy itself responds to a request that no service should
// get, or 0. The status is below 500, because such a request is not an exception of the service.
func refused(r *http.Request) (status int, why string) {
	switch {
	case r.Method == http.MethodConnect:
		return http.StatusMethodNotAllowed,
			"CONNECT is for a proxy that connects to any host; this one is in front of a service"
	case r.ProtoMajor != 1: // PRI * HTTP/2.0, which net/http leaves to handlers
		return http.StatusBadRequest, "HTTP/2 is not spoken here"
	case r.RequestURI == "*" && r.Method != http.MethodOptions:
		return http.StatusBadRequest, "* is for OPTIONS only"
	}
	return 0, ""
}
