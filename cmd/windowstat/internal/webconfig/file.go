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
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/internal/logonce"
)

// File is a web configuration file. It is looked at for each request and each handshake, so that changes hold at once; one with
// a mistake is logged, and what it said before stays. It must be made with [Open], and is safe for concurrent use.
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
	limiter   *rate.Limiter // nil without rate_limit
}

// Check returns what is wrong with a file; the error names it.
func Check(path string) error {
	_, err := read(path)
	return err
}

// Open reads a file.
func Open(path string, logger *slog.Logger) (*File, error) {
	s, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, log: logonce.Logger{To: logger}, last: s}, nil
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
	if every := s.RateLimiterConfig; every.Interval != 0 {
		s.limiter = rate.NewLimiter(rate.Every(every.Interval), every.Burst)
	}
	return s, nil
}

// current returns what the file says now, or what it said last before a mistake.
func (f *File) current() *state {
	content, err := os.ReadFile(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && bytes.Equal(content, f.last.content) {
		return f.last
	}
	if err == nil && bytes.Equal(content, f.refused) && time.Now().Before(f.again) {
		return f.last
	}
	if err == nil && len(content) == 0 {
		err = errors.New("the file is empty") // it is being written, and must not open what it protects
	}
	var next *state
	if err == nil {
		next, err = read(f.path)
	}
	if err != nil {
		f.refused, f.again = content, time.Now().Add(retryAfter)
		f.log.Log(slog.LevelError, "the web configuration was not read again; what it said before stays", "file", f.path, "err", err)
		return f.last
	}
	f.last = next
	return next
}
