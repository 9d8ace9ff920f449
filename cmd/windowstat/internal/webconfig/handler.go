package webconfig

import (
	"crypto/tls"
	"net/http"
	"net/netip"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/windowstat/windowstat/internal/clientip"
)

// Protect gives a server the TLS, the headers and the passwords of the file. The server is then to be served with
// [http.Server.ServeTLS] if it has a TLSConfig. The networks are those of proxies whose X-Forwarded-For is trusted.
func (f *File) Protect(server *http.Server, proxies []netip.Prefix) {
	first := f.current()
	server.Protocols.SetHTTP2(first.HTTPConfig.HTTP2)
	server.Handler = &guard{file: f, next: server.Handler, proxies: proxies, turns: newTurns()}
	if !first.TLSConfig.IsEnabled() {
		return
	}
	protocols := []string{"http/1.1"}
	if first.HTTPConfig.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	server.TLSConfig = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := f.current()
		config, err := web.ConfigToTLSConfig(&s.TLSConfig) // it reads the certificates again
		if err == nil {
			config.NextProtos = protocols
		}
		return config, err
	}}
}

// guard serves requests with a right password, and refuses others.
type guard struct {
	file    *File
	next    http.Handler
	proxies []netip.Prefix
	turns   *turns
}

// open are the paths of probes, which have no passwords, and say nothing but that the process is there.
var open = map[string]bool{"/-/healthy": true, "/-/ready": true}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.file.current()
	for name, value := range s.HTTPConfig.Header {
		w.Header().Set(name, value)
	}
	status := http.StatusOK
	if !open[r.URL.Path] {
		if status = g.admit(s, r); status == http.StatusOK && s.limiter != nil && !s.limiter.Allow() { // guesses take nothing of it
			status = http.StatusTooManyRequests
		}
	}
	switch status {
	case http.StatusOK:
		g.next.ServeHTTP(w, r)
		return
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Basic")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, http.StatusText(status), status)
}

// admit returns 200 for a request that has a right password or needs none, and otherwise the status of its refusal.
func (g *guard) admit(s *state, r *http.Request) int {
	if len(s.Users) == 0 {
		return http.StatusOK
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return http.StatusUnauthorized
	}
	if s.passwords.remembered(user, password) {
		return http.StatusOK
	}
	end, err := g.turns.wait(r.Context(), clientip.Of(r, g.proxies))
	if err != nil {
		return http.StatusTooManyRequests
	}
	defer end()
	// Another request may have shown meanwhile that it is right.
	if s.passwords.remembered(user, password) || s.passwords.compare(user, password) {
		return http.StatusOK
	}
	return http.StatusUnauthorized
}
