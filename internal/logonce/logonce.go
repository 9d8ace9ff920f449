// Package logonce logs what may happen with every request once, and not each time.
package logonce

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Logger logs each message at once, and then at most once a minute, with how often it was not logged. Messages are constants, so
// there are few. It is safe for concurrent use.
type Logger struct {
	To *slog.Logger

	mu   sync.Mutex
	told map[string]told // by message
}

type told struct {
	at   time.Time
	more int // times since then
}

const tellEvery = time.Minute

// Log logs a message, unless it was within the last minute.
func (t *Logger) Log(level slog.Level, message string, args ...any) {
	t.mu.Lock()
	if t.told == nil {
		t.told = map[string]told{}
	}
	last, now := t.told[message], time.Now()
	next, tell := told{at: now}, now.Sub(last.at) >= tellEvery
	if !tell {
		next = told{last.at, last.more + 1}
	} else if last.more > 0 {
		args = append(args, "more_since", last.at.UTC().Format(time.RFC3339), "more", last.more)
	}
	t.told[message] = next
	t.mu.Unlock()
	if tell {
		t.To.Log(context.Background(), level, message, args...)
	}
}

// Server is the ErrorLog of a http.Server: for what that reports, which has no levels: what an operator must know is told, and what any
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
		s.To.Debug(text)
	default:
		s.Log(slog.LevelWarn, "the HTTP server complains", "err", text)
	}
	return len(line), nil
}
