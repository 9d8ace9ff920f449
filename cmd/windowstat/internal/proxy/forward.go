package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/redact"
)

// ParseUpstream parses the URL of a service: http or https, a host, and optionally a path.
func ParseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	s = redact.URL(s) // for error messages
	if err != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port: %w", s, errors.Unwrap(err))
	}
	if port := u.Port(); port != "" {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return nil, fmt.Errorf("%q: port %q is not a number from 0 to 65535", s, port)
		}
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port, with a path at most", s)
	}
	return u, nil
}

// forward makes the request to the upstream from the client's request.
func (o *Options) forward(r *httputil.ProxyRequest) {
	r.Out.URL = target(o.Upstream, r.In)
	// Keep the client's Host, because services use it in links. Package httputil would set the upstream's host.
	r.Out.Host = r.In.Host
	r.Out.Trailer = r.In.Trailer // filled in at the end of the body
	if b, ok := r.In.Body.(*clientBody); ok {
		r.Out.Body = b // package httputil hides its Close
	}
	if r.In.ContentLength == 0 && r.In.Header.Get("Content-Length") != "" {
		// The transport sends Content-Length: 0 for all methods, such as DELETE, only with this encoding.
		r.Out.Body, r.Out.TransferEncoding = http.NoBody, []string{"identity"}
	}
	o.forwarded(r)
}

// target returns the URL of a request: the path of the upstream, followed by the target of the request, byte for byte.
//
// For the upstream http://app:8000/base/, by the target in the request line:
//
//	/a%2Fb?x=1         http://app:8000/base/a%2Fb?x=1
//	http://host/a      http://app:8000/base/a
//	*                  * at app:8000
//	/a?                http://app:8000/base/a?
//
// A URL that package url parses and prints could differ from the target: characters such as ^ would be encoded, and a
// service may treat the two forms differently.
func target(upstream *url.URL, in *http.Request) *url.URL {
	u := &url.URL{Scheme: upstream.Scheme, Host: upstream.Host}
	path, query, hasQuery := strings.Cut(in.RequestURI, "?")
	u.RawQuery, u.ForceQuery = query, hasQuery && query == ""
	switch {
	case path == "*": // OPTIONS for the server itself
		u.Path = path
		return u
	case !strings.HasPrefix(path, "/"): // http://host/path
		_, rest, _ := strings.Cut(path, "://")
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	path = strings.TrimSuffix(upstream.EscapedPath(), "/") + path
	if strings.HasPrefix(path, "//") { // package url would write an Opaque with // as a host
		u.RawPath = encode(path)
		u.Path, _ = url.PathUnescape(u.RawPath) // net/http has refused invalid encodings
	} else {
		u.Opaque = path // sent unchanged
	}
	return u
}

// encode encodes the characters that package url does not allow in a path. All others stay, so package url sends the
// result unchanged.
func encode(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>?\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// describesClient reports whether a service may read the name of a header as X-Forwarded-… or Forwarded. CGI and WSGI
// pass headers as environment variables, in which X_Forwarded_For and X-Forwarded-For have the same name.
func describesClient(name string) bool {
	plain := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return strings.HasPrefix(plain, "x-forwarded-") || plain == "forwarded"
}

// forwarded sets the headers that describe the client. It keeps the values from trusted proxies and appends to their
// lists. It replaces the values from all other clients.
//
// A trusted proxy is a peer whose address is in Bounds.Proxies. For the peer 10.0.0.2, which sends X-Forwarded-For: a,
// the upstream gets
//
//	trusted      X-Forwarded-For: a, 10.0.0.2
//	untrusted    X-Forwarded-For: 10.0.0.2
func (o *Options) forwarded(r *httputil.ProxyRequest) {
	in, out := r.In.Header, r.Out.Header
	// Untrusted clients must not set these headers, under any name that a service may read.
	maps.DeleteFunc(out, func(name string, _ []string) bool { return describesClient(name) })
	r.SetXForwarded()
	if r.In.Host == "" {
		out.Del("X-Forwarded-Host")
	}
	if !clientip.In(o.Bounds.Proxies, r.In.RemoteAddr) {
		return
	}
	for name, values := range in {
		if strings.HasPrefix(name, "X-Forwarded-") {
			out[name] = values
		}
	}
	address, _, _ := net.SplitHostPort(r.In.RemoteAddr)
	grow(out, in, "X-Forwarded-For", address)
	if len(in["Forwarded"]) > 0 {
		// RFC 7239 requires brackets and quotes around an IPv6 address.
		if from, _ := netip.ParseAddr(address); from.Unmap().Is6() {
			address = `"[` + from.WithZone("").String() + `]"`
		}
		grow(out, in, "Forwarded", "for="+address)
	}
}

// client returns the host of the client that sent a request. It returns an empty string for a trusted proxy that does
// not report its client.
func (o *Options) client(r *http.Request) string {
	host := clientip.Of(r, o.Bounds.Proxies)
	if clientip.In(o.Bounds.Proxies, r.RemoteAddr) && host == clientip.OfAddress(r.RemoteAddr) {
		return ""
	}
	return host
}

// grow sets a header of out to the list in the header of in, with one more value.
func grow(out, in http.Header, name, value string) {
	out.Set(name, strings.Join(append(slices.Clone(in[name]), value), ", "))
}
