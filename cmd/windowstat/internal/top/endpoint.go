package top

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/internal/redact"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/exporter"
)

// Endpoint is a service whose statistics are read. It must be made with [NewEndpoint].
type Endpoint struct {
	base   *url.URL
	client *http.Client
}

// secondsPath is the page of a URL without a path.
const secondsPath = "/metrics/seconds"

// NewEndpoint makes an endpoint of host:port, where the host may be left out for this machine, or of a URL, http or https; both
// may have the path of the per-second page or of the metrics page above it. TLS, credentials and headers come from the
// configuration. It sends nothing. The error joins what is wrong with either.
func NewEndpoint(raw string, c config.HTTPClientConfig) (*Endpoint, error) {
	base, err := parseURL(raw)
	client, wrong := config.NewClientFromConfig(c, "windowstat top", config.WithUserAgent("windowstat/"+exporter.Version()))
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	return &Endpoint{base, client}, nil
}

func parseURL(raw string) (*url.URL, error) {
	whole, short := raw, !strings.Contains(raw, "://")
	if short {
		if whole = "http://" + raw; strings.HasPrefix(raw, ":") {
			whole = "http://127.0.0.1" + raw
		}
	}
	u, err := url.Parse(whole)
	raw = redact.URL(raw) // in messages
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("%q is not host:port or a URL: %w", raw, err)
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("%q comes with a user name, which others on this machine can see;\nput it into the file of --http.config.file", u.Host)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || short && u.Port() == "":
		return nil, fmt.Errorf("%q is not host:port, http://host:port or https://host:port,\nwith the path of a page at most", raw)
	}
	if port := u.Port(); port != "" {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return nil, fmt.Errorf("%q: port %q is not a number from 0 to 65535", raw, port)
		}
	}
	return u, nil
}

// String returns the URL, cleaned.
func (e *Endpoint) String() string { return clean(e.base.String()) }

// Name returns the host and port, cleaned, and the path if there is one.
func (e *Endpoint) Name() string { return clean(e.base.Host + strings.TrimRight(e.base.Path, "/")) }

// pages returns where the per-second page may be, the likeliest first.
func (e *Endpoint) pages() []*url.URL {
	if strings.Trim(e.base.Path, "/") == "" {
		return []*url.URL{e.at(secondsPath)}
	}
	return []*url.URL{e.base, e.at(path.Join(e.base.Path, "seconds"))}
}

// Same reports whether two endpoints have a page in common, so that they would be added up twice.
func (e *Endpoint) Same(other *Endpoint) bool {
	where := func(u *url.URL) string {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		return net.JoinHostPort(strings.ToLower(u.Hostname()), port) + strings.TrimRight(u.Path, "/")
	}
	return slices.ContainsFunc(e.pages(), func(u *url.URL) bool {
		return slices.ContainsFunc(other.pages(), func(v *url.URL) bool { return where(u) == where(v) })
	})
}

func (e *Endpoint) at(p string) *url.URL {
	u := *e.base
	u.Path, u.RawPath = p, ""
	return &u
}

// requestTimeout is how long a page may take. Only tests change it.
var requestTimeout = 10 * time.Second

// get requests a page, and returns the endpoint's clock, to the second.
func (e *Endpoint) get(ctx context.Context, u *url.URL, query url.Values) (p page, now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked := *u
	asked.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), http.NoBody)
	if err != nil {
		return nil, now, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, now, reason(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, now, refusal(u, resp)
	}
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return nil, now, fmt.Errorf("the answer is not zipped as it says: %w", err)
		}
	}
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); kind != "text/plain" {
		return nil, now, fmt.Errorf("%s is %q, and no page of metrics", clean(u.Redacted()), clean(kind))
	}
	if now, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
		now = time.Now()
	}
	p, err = readPage(body)
	return p, now, err
}

// statusError is a response with a status other than 200.
type statusError struct {
	url    string
	status int
	text   string
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("%s: %d %s", e.url, e.status, http.StatusText(e.status))
	if e.text != "" && e.text != http.StatusText(e.status) {
		s += ": " + e.text
	}
	return s
}

// refusal makes a statusError of a response, with the first line of its body.
func refusal(u *url.URL, resp *http.Response) error {
	const enough = 200
	b, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	first, _, _ := strings.Cut(string(b), "\n")
	if resp.StatusCode == http.StatusNotFound {
		first = "" // it says the same again
	}
	if kind := resp.Header.Get("Content-Type"); resp.Header.Get("Content-Encoding") != "" || kind != "" && !strings.HasPrefix(kind, "text/plain") {
		first = ""
	}
	return &statusError{clean(u.Redacted()), resp.StatusCode, clean(first)}
}

// reason removes the URL from the error of a request; it is shown elsewhere.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return fmt.Errorf("no answer in %v", requestTimeout)
		}
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		err = op.Err
	}
	return errors.New(clean(err.Error()))
}
