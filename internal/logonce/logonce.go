// Package logonce logs what may happen with every request once, and not each time.
//
// A server that is away, a client that breaks the protocol or a disk that is full would fill the log of the service at the rate of its
// requests. The first message is logged at once, and later ones at most once a minute with how many there were between.
package logonce

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/redact"
)

// Logger logs each message at once, and then at most once a minute, with how often it was not logged. Messages are constants, so
// there are few. It is safe for concurrent use.
type Logger struct {
	To *slog.Logger

	mu     sync.Mutex
	logged map[string]logged // by message
}

type logged struct {
	at   time.Time
	more int // times since then
}

// interval is how often a message is logged at most.
const interval = time.Minute

// Log logs a message, unless it was within the last minute.
func (t *Logger) Log(level slog.Level, message string, args ...any) {
	t.mu.Lock()
	if t.logged == nil {
		t.logged = map[string]logged{}
	}
	last, now := t.logged[message], time.Now()
	next, due := logged{at: now}, now.Sub(last.at) >= interval
	if !due {
		next = logged{last.at, last.more + 1}
	} else if last.more > 0 {
		args = append(args, "more_since", last.at.UTC().Format(time.RFC3339), "more", last.more)
	}
	t.logged[message] = next
	t.mu.Unlock()
	if due {
		t.To.Log(context.Background(), level, message, args...)
	}
}

// Server returns the ErrorLog of an http.Server, whose lines have no levels: what an operator must know is logged once, and what any
// stranger can bring about is for debugging.
func Server(logger *slog.Logger) *log.Logger {
	return log.New(&serverLines{Logger{To: logger}}, "", 0)
}

type serverLines struct{ Logger }

// Write implements io.Writer.
func (s *serverLines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		s.Log(slog.LevelError, "a connection cannot be accepted", "err", text)
	case strings.HasPrefix(text, "http: panic serving"):
		s.Log(slog.LevelError, "a handler panicked", "err", text)
	case strings.HasPrefix(text, "http: TLS handshake error"), strings.HasPrefix(text, "http2: "):
		s.To.Debug(redact.Error(errors.New(text)).Error())
	default:
		s.Log(slog.LevelWarn, "the HTTP server complains", "err", redact.Error(errors.New(text)))
	}
	return len(line), nil
}
