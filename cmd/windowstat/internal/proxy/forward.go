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

// ParseUpstream reads the URL of a service: http or https, and a path at most.
func ParseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	s = redact.URL(s) // in messages
	if err != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port: %w", s, errors.Unwrap(err))
	}
	if port := u.Port(); port != "" {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return nil, fmt.Errorf("%q: port %q is not a number from 0 to 65535", s, port)
		}
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port, with a path at most", s)
	}
	return u, nil
}

// forward makes a request to the upstream out of a client's: the same one.
func (o *Options) forward(r *httputil.ProxyRequest) {
	r.Out.URL = target(o.Upstream, r.In)
	// The Host stays the client's, as a service makes links with it; package httputil would put the upstream's there.
	r.Out.Host = r.In.Host
	r.Out.Trailer = r.In.Trailer // which is filled in when the body has been read
	if r.In.ContentLength == 0 && r.In.Header.Get("Content-Length") != "" {
		r.Out.Body, r.Out.TransferEncoding = http.NoBody, []string{"identity"} // so that DELETE has Content-Length: 0, too
	}
	o.forwarded(r)
}

// target is what a request asks for, byte for byte as it came, behind the path of the upstream.
func target(upstream *url.URL, in *http.Request) *url.URL {
	u := &url.URL{Scheme: upstream.Scheme, Host: upstream.Host}
	path, query, asks := strings.Cut(in.RequestURI, "?")
	u.RawQuery, u.ForceQuery = query, asks && query == ""
	switch {
	case path == "*": // of OPTIONS: the server itself
		u.Path = path
		return u
	case !strings.HasPrefix(path, "/"): // http://host/path
		_, rest, _ := strings.Cut(path, "://")
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	path = strings.TrimSuffix(upstream.EscapedPath(), "/") + path
	if strings.HasPrefix(path, "//") { // would be taken for a host
		u.RawPath = encode(path)
		u.Path, _ = url.PathUnescape(u.RawPath) // the server has refused what is wrong
	} else {
		u.Opaque = path // is sent as it is
	}
	return u
}

// encode encodes the characters that package url does not have in a path, and leaves all others as they are: so the path is sent as
// it is.
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

// saysWhoAsks reports whether a header is X-Forwarded-… or Forwarded, or one that a service may take for it: to those that get headers
// as variables of an environment, as CGI and WSGI have them, X_Forwarded_For is the same.
func saysWhoAsks(name string) bool {
	plain := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return strings.HasPrefix(plain, "x-forwarded-") || plain == "forwarded"
}

// forwarded tells the upstream who asks: what trusted proxies say of that is kept and grows, and what others say is replaced.
func (o *Options) forwarded(r *httputil.ProxyRequest) {
	in, out := r.In.Header, r.Out.Header
	// A stranger must not be able to say who asks. Names are compared as the least careful service would read them.
	maps.DeleteFunc(out, func(name string, _ []string) bool { return saysWhoAsks(name) })
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
		if from, _ := netip.ParseAddr(address); from.Unmap().Is6() {
			address = `"[` + from.WithZone("").String() + `]"`
		}
		grow(out, in, "Forwarded", "for="+address)
	}
}

// client returns the host of a request's client, empty for a trusted proxy that does not say for whom it asks.
func (o *Options) client(r *http.Request) string {
	host := clientip.Of(r, o.Bounds.Proxies)
	if clientip.In(o.Bounds.Proxies, r.RemoteAddr) && host == clientip.OfAddress(r.RemoteAddr) {
		return ""
	}
	return host
}

// grow appends to the list in a header that came.
func grow(out, in http.Header, name, value string) {
	out.Set(name, strings.Join(append(slices.Clone(in[name]), value), ", "))
}
