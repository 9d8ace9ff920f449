package main

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// teller logs what may happen with every request: each message at once, and then at most once a minute, with how often it
// was not logged. Messages are constants, so there are few.
type teller struct {
	logger *slog.Logger

	mu   sync.Mutex
	told map[string]*told // by message
}

type told struct {
	at   time.Time
	more int // times since then
}

const tellEvery = time.Minute

func (t *teller) tell(level slog.Level, message string, args ...any) {
	t.mu.Lock()
	m := t.told[message]
	if m == nil {
		if t.told == nil {
			t.told = map[string]*told{}
		}
		m = &told{}
		t.told[message] = m
	}
	if now := time.Now(); m.at.IsZero() || now.Sub(m.at) >= tellEvery {
		if m.more > 0 {
			args = append(args, "more_since", m.at.UTC().Format(time.RFC3339), "more", m.more)
		}
		*m = told{at: now}
		t.mu.Unlock()
		t.logger.Log(context.Background(), level, message, args...)
		return
	}
	m.more++
	t.mu.Unlock()
}

// serverLog is for what a http.Server reports, which has no levels: what an operator must know is told, and what any
// stranger can bring about is for debugging.
func serverLog(logger *slog.Logger) *log.Logger {
	return log.New(&serverLines{teller{logger: logger}}, "", 0)
}

type serverLines struct{ teller }

func (s *serverLines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		s.tell(slog.LevelError, "a connection cannot be accepted", "err", text)
	case strings.HasPrefix(text, "http: panic serving"):
		s.tell(slog.LevelError, "a handler panicked", "err", text)
	case strings.HasPrefix(text, "http: TLS handshake error"), strings.HasPrefix(text, "http2: "):
		s.logger.Debug(text)
	default:
		s.tell(slog.LevelWarn, "the HTTP server complains", "err", text)
	}
	return len(line), nil
}
