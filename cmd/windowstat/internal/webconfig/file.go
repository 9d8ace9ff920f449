// Package webconfig adds the TLS settings, headers and passwords of a web configuration file to a server. The file has
// the format of Prometheus's exporters, whose toolkit reads and validates it. This package checks the passwords itself:
// a client that guesses passwords delays only itself, and not clients with a right password.
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

// File is a web configuration file. Each request and each handshake reads it, so changes take effect immediately.
// An invalid file is logged, and the previous configuration stays in effect. Create a File with [Open]. It is safe for
// concurrent use after [File.Protect].
type File struct {
	path string
	log  logonce.Logger

	mu      sync.Mutex // guards the fields below
	last    *state
	invalid []byte    // content of the file that was refused last
	again   time.Time // earliest time to validate invalid again; files that it names may have been fixed
}

// retryAfter is the time between two validations of an unchanged invalid file. A validation delays all requests.
const retryAfter = time.Second

// state is a valid configuration.
type state struct {
	web.Config
	content   []byte
	passwords *passwords
	limiter   *rate.Limiter // of all requests
}

// Open reads a file. Its errors contain the path.
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
	// HTTP/2 is off by default. Other exporters enable it by default.
	versions := web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}
	s := &state{content: content, Config: web.Config{TLSConfig: versions}}
	if err == nil {
		err = yaml.Unmarshal(content, &s.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err) // not all of the toolkit's errors name the file
	}
	s.TLSConfig.SetDirectory(filepath.Dir(path))
	s.passwords = newPasswords(s.Users)
	s.limiter = rate.NewLimiter(rate.Every(s.RateLimiterConfig.Interval), s.RateLimiterConfig.Burst) // 0 means no limit
	return s, nil
}

// current returns the configuration in the file, or the last valid one.
func (f *File) current() *state {
	// Compare contents. The time of the last change is not sufficient: Kubernetes replaces files by links, and a file
	// may change twice in a second.
	content, err := os.ReadFile(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	isInvalid := bytes.Equal(content, f.invalid) && time.Now().Before(f.again)
	if err == nil && (bytes.Equal(content, f.last.content) || isInvalid) {
		return f.last
	}
	next, err := read(f.path)
	if err == nil && len(next.content) == 0 {
		err = errors.New("the file is empty") // an editor may be writing it; do not drop the passwords
	}
	if err != nil {
		f.invalid, f.again = content, time.Now().Add(retryAfter)
		f.log.Log(slog.LevelError, "cannot load the web configuration; the previous one stays in effect",
			"file", f.path, "err", err)
		return f.last
	}
	f.last = next
	return next
}

// Protect adds TLS, headers and passwords to a server. If the server has a TLSConfig afterwards, the caller must use
// [http.Server.ServeTLS]. X-Forwarded-For headers from the networks proxies are trusted. Call Protect once.
func (f *File) Protect(server *http.Server, proxies []netip.Prefix, logger *slog.Logger) {
	f.log.To = logger
	first := f.current()
	server.Protocols.SetHTTP2(first.HTTPConfig.HTTP2)
	server.Handler = &guard{file: f, next: server.Handler, proxies: proxies, queue: newFairQueue()}
	if !first.TLSConfig.IsEnabled() {
		return
	}
	protocols := []string{"http/1.1"}
	if first.HTTPConfig.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	// Create the configuration for each handshake, to load renewed certificates without a restart.
	server.TLSConfig = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := f.current()
		config, err := web.ConfigToTLSConfig(&s.TLSConfig) // reads the certificates
		if err == nil {
			config.NextProtos = protocols
		}
		return config, err
	}}
}

// guard serves requests with a right password and refuses all others.
type guard struct {
	file    *File
	next    http.Handler
	proxies []netip.Prefix
	queue   *fairQueue
}

// open has the paths of probes. They need no password, and only report the state of the process.
var open = map[string]bool{"/-/healthy": true, "/-/ready": true}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.file.current()
	for name, value := range s.HTTPConfig.Header {
		w.Header().Set(name, value)
	}
	status := http.StatusOK
	if !open[r.URL.Path] {
		if status = g.admit(s, r); status == http.StatusOK &&
			!s.limiter.Allow() { // wrong passwords do not use up the limit
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

// admit returns 200 if a request has a right password or needs none, and otherwise the status for the refusal.
func (g *guard) admit(s *state, r *http.Request) int {
	if len(s.Users) == 0 {
		return http.StatusOK
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return http.StatusUnauthorized
	}
	// A verified password does not wait in the queue, so guesses of other clients do not delay it.
	if s.passwords.isVerified(user, password) {
		return http.StatusOK
	}
	status := http.StatusUnauthorized
	if err := g.queue.do(r.Context(), clientip.Of(r, g.proxies), func() {
		// Another request may have verified the password while this one waited.
		if s.passwords.isVerified(user, password) || s.passwords.compare(user, password) {
			status = http.StatusOK
		}
	}); err != nil {
		return http.StatusTooManyRequests
	}
	return status
}
