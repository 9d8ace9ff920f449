package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/redact"
)

// Endpoint is a service with a per-second page. Create it with [NewEndpoint].
type Endpoint struct {
	base   *url.URL // as the user gave it
	page   *url.URL // the per-second page, normalized
	client *http.Client
}

// defaultPage is the path of the per-second page if a URL has no path. pageName is its name below the metrics page.
const (
	defaultPage = "/metrics" + pageName
	pageName    = "/seconds"
)

// NewEndpoint creates an endpoint. raw is host:port, :port for this machine, or a URL with http or https. It may have
// the path of the per-second page, which ends in /seconds, or of the metrics page above it. The client may have TLS,
// credentials and headers; nil is a plain client. NewEndpoint sends no request.
func NewEndpoint(raw string, client *http.Client) (*Endpoint, error) {
	base, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	// Copy the client: gzhttp replaces its transport, and the client of the caller must not change.
	own := http.Client{Transport: new(http.Transport)}
	if client != nil {
		own = *client
	}
	own.Transport = gzhttp.Transport(own.Transport)
	//	argument                         page
	//	app:9719                         http://app:9719/metrics/seconds
	//	https://app/internal/metrics     https://app/internal/metrics/seconds
	//	https://app/x/metrics/seconds    https://app/x/metrics/seconds
	page := defaultPage
	if p := path.Join("/", base.Path); p != "/" {
		page = path.Join(strings.TrimSuffix(p, pageName), pageName)
	}
	// Normalize the host, because Same compares URLs as texts: HTTP://App:80 and http://app have the same page.
	u := base.ResolveReference(&url.URL{Path: page})
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return &Endpoint{base, u, &own}, nil
}

// parseURL parses the argument of a user, where host:port has no scheme and :port no host. It checks ports, because
// net/http would report a wrong port only when it connects, once a second.
func parseURL(raw string) (*url.URL, error) {
	whole, short := raw, !strings.Contains(raw, "://")
	if short {
		if whole = "http://" + raw; strings.HasPrefix(raw, ":") {
			whole = "http://127.0.0.1" + raw
		}
	}
	u, err := url.Parse(whole)
	raw = redact.URL(raw) // for error messages
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port or a URL: %w", raw, errors.Unwrap(err))
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf(
			"%q comes with a user name, which others on this machine can see;\n"+
				"put it into the file of --http.config.file",
			u.Host,
		)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", short && u.Port() == "",
		u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return nil, fmt.Errorf(
			"%q is not host:port, http://host:port or https://host:port,\nwith the path of a page at most",
			raw,
		)
	}
	if port := u.Port(); port != "" {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return nil, fmt.Errorf("%q: port %q is not a number from 0 to 65535", raw, port)
		}
	}
	return u, nil
}

// String returns the cleaned URL.
func (e *Endpoint) String() string { return clean(e.base.String()) }

// Name returns the cleaned host, port and path.
func (e *Endpoint) Name() string { return clean(e.base.Host + strings.TrimRight(e.base.Path, "/")) }

// Same reports whether two endpoints have the same page, whose calls would be counted twice.
func (e *Endpoint) Same(other *Endpoint) bool { return e.page.String() == other.page.String() }

// requestTimeout limits a request. Only tests change it.
var requestTimeout = 10 * time.Second

// get requests a page of a media type and passes its body to read. requestTimeout includes the body. Errors are cleaned
// and do not contain the query, because the screen shows them each second.
func (e *Endpoint) get(
	ctx context.Context,
	u *url.URL,
	query url.Values,
	kind string,
	read func(io.Reader) error,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no response within %v", requestTimeout))
	defer cancel()
	full := *u
	full.RawQuery = query.Encode()
	req := &http.Request{
		Method: http.MethodGet,
		URL:    &full,
		Header: http.Header{"Accept": {kind}, "User-Agent": {"windowstat/" + collector.Version()}},
	}
	resp, err := e.client.Do(req.WithContext(ctx))
	if err != nil {
		return redact.Error(errors.Unwrap(err)) // without the URL, which is on the screen anyway
	}
	defer resp.Body.Close()
	// Check the media type before the body: a login page with status 200 would otherwise fail in the parser, with an
	// error about its HTML.
	is, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case resp.StatusCode != http.StatusOK:
		return refusal(u, resp, is)
	case is != kind:
		return fmt.Errorf("%s is %q, and not %q", clean(u.String()), redact.Excerpt(is, resp, ""), kind)
	}
	return read(resp.Body)
}

// statusError is the status of a response other than 200. Callers send a different request after some of them.
type statusError int

func (e statusError) Error() string { return fmt.Sprint(int(e), " ", http.StatusText(int(e))) }

// refusal returns the error for a response. It includes the first line of the body if that is more specific than the
// status.
//
// The body of a 404 is ignored, because poll adds its own advice to that status. HTML and JSON bodies are ignored,
// because their first lines explain nothing to a user.
func refusal(u *url.URL, resp *http.Response, kind string) error {
	const enough = 200
	b, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	first, _, _ := strings.Cut(string(b), "\n")
	err := fmt.Errorf("%s: %w", clean(u.String()), statusError(resp.StatusCode))
	if (kind == "text/plain" || kind == "") && first != "" && first != http.StatusText(resp.StatusCode) &&
		resp.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("%w: %s", err, redact.Excerpt(first, resp, ""))
	}
	return err
}
