// Package webconfig adds the TLS settings, headers and passwords of a web configuration file to a server. The file has
// the format of Prometheus's exporters, whose toolkit reads and validates it. This package checks the passwords itself:
// a client that guesses passwords delays only itself, and not clients with a right password.
//
// The protection of a request has four steps. The first failing step determines the response:
//
//	response headers of the file            added to all responses, also to refusals
//	paths of probes (/-/healthy, /-/ready)  served without a password
//	password                                401 if wrong or absent; 429 if too many of a host wait
//	rate limit of the file                  429 if exhausted
//
// The file can change while the server runs. Passwords, headers, certificates and the rate limit follow within a
// second; whether there is TLS or HTTP/2 is fixed at the start.
package webconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/smallfile"
)

// File is a web configuration file. [File.Run] reads it, and the files that it names, once a second; no request and no
// handshake reads a file, so a file that blocks the reader blocks no client. An invalid file is logged, and the
// previous configuration stays in effect. Create a File with [Open]. It is safe for concurrent use after
// [File.Protect].
type File struct {
	// path is as the user wrote it. Paths within the file are relative to its directory.
	path string
	// log omits repeated messages, because an invalid file is read again each second.
	log   logonce.Logger
	state atomic.Pointer[state] // the last valid configuration
}

const (
	pollInterval = time.Second // between two reads of the file
	maxSize      = 1 << 20     // of the file, and of each file that it names
)

// state is a valid configuration.
type state struct {
	// Config is the file as the toolkit defines it. Users maps names to bcrypt hashes.
	web.Config
	source
	// tls is nil if the file has no TLS settings.
	tls *tls.Config // nil without TLS
	// passwords and limiter are new after each change of the file. Passwords must then be verified again, and the limit
	// begins with a full burst.
	passwords *passwords
	limiter   *rate.Limiter // of all requests
}

// source is the content of the file and of the files that it names.
type source struct {
	content []byte
	// cert and key are the server's certificate and its private key. ca has the authorities for certificates of
	// clients. A field is nil if the web configuration file does not name its source.
	cert, key, ca []byte
}

// equal reports whether two sources have the same content.
func (s *source) equal(x *source) bool {
	return bytes.Equal(s.content, x.content) &&
		bytes.Equal(s.cert, x.cert) && bytes.Equal(s.key, x.key) && bytes.Equal(s.ca, x.ca)
}

// Open reads a file. Its errors contain the path.
func Open(path string) (*File, error) {
	s, err := read(path, nil)
	if err != nil {
		return nil, err
	}
	f := &File{path: path}
	f.state.Store(s)
	return f, nil
}

// read reads a file, and the files that it names. It returns last if nothing has changed.
func read(path string, last *state) (s *state, err error) {
	defer func() {
		if err != nil && !strings.HasPrefix(err.Error(), path) {
			err = fmt.Errorf("%s: %w", path, err) // not all of the toolkit's errors name the file
		}
	}()
	// HTTP/2 is off by default. Other exporters enable it by default.
	versions := web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}
	s = &state{Config: web.Config{TLSConfig: versions}}
	// smallfile refuses everything but small regular files. A pipe as the file would block, and a device may have no
	// end.
	if s.content, err = smallfile.Read(path, maxSize); err != nil {
		return nil, err
	}
	if err = yaml.Unmarshal(s.content, &s.Config); err != nil {
		return nil, err
	}
	c := &s.TLSConfig
	// Relative paths within the file are relative to its directory, as in Prometheus.
	c.SetDirectory(filepath.Dir(path))
	for _, x := range []struct {
		path string
		to   *[]byte
	}{{c.TLSCertPath, &s.cert}, {c.TLSKeyPath, &s.key}, {c.ClientCAs, &s.ca}} {
		if x.path == "" {
			continue
		}
		*x.to, err = smallfile.Read(x.path, maxSize)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // Validate reports missing files
			return nil, err
		}
	}
	// Compare contents. The time of the last change is not sufficient: Kubernetes replaces files by links, and a file
	// may change twice in a second.
	if last != nil && s.equal(&last.source) {
		return last, nil
	}
	// Validate reads the files again, but only after they were found to be small regular files.
	if err = web.Validate(path); err != nil {
		return nil, err
	}
	if s.tls, err = s.tlsConfig(); err != nil {
		return nil, err
	}
	s.passwords = newPasswords(s.Users)
	s.limiter = rate.NewLimiter(rate.Every(s.RateLimiterConfig.Interval), s.RateLimiterConfig.Burst) // 0 means no limit
	return s, nil
}

// tlsConfig returns the configuration of the toolkit with the certificate in memory, or nil without TLS. The toolkit's
// own configuration would read the certificate for each handshake.
func (s *state) tlsConfig() (*tls.Config, error) {
	if !s.TLSConfig.IsEnabled() {
		return nil, nil
	}
	c := s.TLSConfig
	// The toolkit accepts the texts that the files contain.
	if c.TLSCertPath != "" {
		c.TLSCertPath, c.TLSCert = "", string(s.cert)
	}
	if c.TLSKeyPath != "" {
		c.TLSKeyPath, c.TLSKey = "", config.Secret(s.key)
	}
	if c.ClientCAs != "" {
		c.ClientCAs, c.ClientCAsText = "", string(s.ca)
	}
	t, err := web.ConfigToTLSConfig(&c)
	if err != nil {
		return nil, err
	}
	// The function of the toolkit parses the certificate at each call. Call it once, and keep the result.
	cert, err := t.GetCertificate(nil)
	if err != nil {
		return nil, err
	}
	t.Certificates, t.GetCertificate = []tls.Certificate{*cert}, nil
	return t, nil
}

// Run reads the file and the files that it names once a second, until ctx ends, so changes take effect within a second.
// It returns late, or never, if the file system blocks a read; the last valid configuration then stays in effect.
func (f *File) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.reload()
		}
	}
}

// reload reads the file, and keeps the last configuration if it is invalid.
func (f *File) reload() {
	last := f.state.Load()
	next, err := read(f.path, last)
	if err == nil && len(next.content) == 0 && len(last.content) > 0 {
		err = errors.New("the file is empty") // an editor may be writing it; do not drop the passwords
	}
	if err != nil {
		f.log.Log(slog.LevelError, "cannot load the web configuration; the previous one stays in effect",
			"file", f.path, "err", err)
		return
	}
	f.state.Store(next)
}

// Protect adds TLS, headers and passwords to a server. If the server has a TLSConfig afterwards, the caller must use
// [http.Server.ServeTLS]. X-Forwarded-For headers from the networks proxies are trusted. Call Protect once, and then
// [File.Run]. TLS and HTTP/2 cannot be turned on or off later.
func (f *File) Protect(server *http.Server, proxies []netip.Prefix, logger *slog.Logger) {
	f.log.To = logger
	first := f.state.Load()
	server.Protocols.SetHTTP2(first.HTTPConfig.HTTP2)
	server.Handler = &guard{file: f, next: server.Handler, proxies: proxies, queue: newFairQueue()}
	if first.tls == nil {
		return
	}
	protocols := []string{"http/1.1"}
	if first.HTTPConfig.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	// Each handshake takes the last configuration, which has renewed certificates without a restart.
	server.TLSConfig = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		t := f.state.Load().tls
		if t == nil {
			return nil, errors.New("the web configuration no longer has a certificate")
		}
		// The configuration is shared by all handshakes, so a copy gets the protocols. The protocols stay as at the
		// start, because HTTP/2 cannot be turned on later.
		t = t.Clone()
		t.NextProtos = protocols
		return t, nil
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
	s := g.file.state.Load()
	// The headers include security headers such as Strict-Transport-Security, which refusals need, too.
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
	// Only basic authentication is supported, as in the exporters of Prometheus.
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
		// The queue of the host is full, or the client has disconnected.
		return http.StatusTooManyRequests
	}
	return status
}
