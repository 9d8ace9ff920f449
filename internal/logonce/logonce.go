// Package logonce limits how often a message is logged.
//
// Without it, an unreachable server, a client that violates the protocol, or a full disk would fill the log of a
// service at the rate of its requests. The first message is logged immediately. Later ones are logged at most once a
// minute, with the number of messages in between.
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

// Logger logs each message immediately, and then at most once a minute, with the number of messages that it suppressed.
// Messages are constants, so their number is small. A Logger is safe for concurrent use.
type Logger struct {
	To *slog.Logger

	mu     sync.Mutex
	logged map[string]logged // by message
}

type logged struct {
	at   time.Time
	more int // suppressed messages since at
}

// interval is the shortest time between two logs of one message.
const interval = time.Minute

// Log logs a message unless it was logged within the last minute.
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

// Server returns a logger for http.Server.ErrorLog, whose lines have no levels. Errors that an operator must fix are
// logged once a minute at most; lines that any client can cause have level debug.
func Server(logger *slog.Logger) *log.Logger {
	return log.New(&serverLines{Logger{To: logger}}, "", 0)
}

type serverLines struct{ Logger }

// Write implements io.Writer.
func (s *serverLines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		s.Log(slog.LevelError, "cannot accept a connection", "err", text)
	case strings.HasPrefix(text, "http: panic serving"):
		s.Log(slog.LevelError, "a handler panicked", "err", text)
	case strings.HasPrefix(text, "http: TLS handshake error"), strings.HasPrefix(text, "http2: "):
		s.To.Debug(redact.Error(errors.New(text)).Error())
	default:
		s.Log(slog.LevelWarn, "error in the HTTP server", "err", redact.Error(errors.New(text)))
	}
	return len(line), nil
}
