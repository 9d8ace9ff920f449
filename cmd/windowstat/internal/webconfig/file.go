// Package webconfig serves with the TLS, the headers and the passwords of a file in the web configuration format of Prometheus's
// exporters; their toolkit reads and validates it. Passwords are checked here: a client that guesses waits for itself, and does not delay
// clients that know one.
package webconfig

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/logonce"
)

// File is a web configuration file. It is looked at for each request and each handshake, so that changes hold at once; one with
// a mistake is logged, and what it said before stays. It must be made with [Open], and is safe for concurrent use
// once it protects a server.
type File struct {
	path string
	log  logonce.Logger

	mu      sync.Mutex // guards what follows
	last    *state
	refused []byte    // what the file has, if that is a mistake
	again   time.Time // when it is read again, as it may name other files that were mended
}

// retryAfter is how long a file with a mistake is not read again unless it changes. Reading it takes a while, for all requests.
const retryAfter = time.Second

// state is what a file says.
type state struct {
	web.Config
	content   []byte
	passwords *passwords
	limiter   *rate.Limiter // of all requests
}

// Open reads a file. The error names it.
func Open(path string) (*File, error) {
	s, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, last: s}, nil
}

// read reads a file. The toolkit validates it, certificates included.
func read(path string) (*state, error) {
	content, err := os.ReadFile(path)
	if err == nil {
		err = web.Validate(path)
	}
	// Unlike with other exporters, HTTP/2 is off unless the file says so.
	s := &state{content: content, Config: web.Config{TLSConfig: web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}}
	if err == nil {
		err = yaml.Unmarshal(content, &s.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err) // not all of the toolkit's errors name the file
	}
	s.TLSConfig.SetDirectory(filepath.Dir(path))
	s.passwords = newPasswords(s.Users)
	s.limiter = rate.NewLimiter(rate.Every(s.RateLimiterConfig.Interval), s.RateLimiterConfig.Burst) // of any rate without an interval
	return s, nil
}

// current returns what the file says now, or what it said last before a mistake.
func (f *File) current() *state {
	// The contents are compared and not the time of the last change: files are replaced by links, as in Kubernetes, and mended within a
	// second.
	content, err := os.ReadFile(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && (bytes.Equal(content, f.last.content) || bytes.Equal(content, f.refused) && time.Now().Before(f.again)) {
		return f.last
	}
	next, err := read(f.path)
	if err == nil && len(next.content) == 0 {
		err = errors.New("the file is empty") // it is being written, and must not open what it protects
	}
	if err != nil {
		f.refused, f.again = content, time.Now().Add(retryAfter)
		f.log.Log(slog.LevelError, "the web configuration was not read again; what it said before stays", "file", f.path, "err", err)
		return f.last
	}
	f.last = next
	return next
}

// Protect gives a server the TLS, the headers and the passwords of the file. The server is then to be served with
// [http.Server.ServeTLS] if it has a TLSConfig. The networks are those of proxies whose X-Forwarded-For is trusted. It is called once.
func (f *File) Protect(server *http.Server, proxies []netip.Prefix, logger *slog.Logger) {
	f.log.To = logger
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
	// The configuration is made for each handshake, so that certificates are renewed without a restart.
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
		if status = g.admit(s, r); status == http.StatusOK && !s.limiter.Allow() { // guesses take nothing of it
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
	// A password that was right before takes no turn: guesses of others do not delay it.
	if s.passwords.remembered(user, password) {
		return http.StatusOK
	}
	status := http.StatusUnauthorized
	if err := g.turns.take(r.Context(), clientip.Of(r, g.proxies), func() {
		// Another request may have shown meanwhile that it is right.
		if s.passwords.remembered(user, password) || s.passwords.compare(user, password) {
			status = http.StatusOK
		}
	}); err != nil {
		return http.StatusTooManyRequests
	}
	return status
}
