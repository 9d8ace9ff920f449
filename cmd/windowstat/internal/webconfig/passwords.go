package webconfig

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"

	"github.com/prometheus/common/config"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/semaphore"
)

// passwords are those of the users of a file. A comparison with bcrypt takes some fifty milliseconds of a processor, so a password
// that was right is remembered: of each user the last one, as a hash that is of no use to who has stolen it without the bcrypt hash.
// Guesses leave nothing behind.
type passwords struct {
	hashes map[string]config.Secret // by user
	any    config.Secret            // is compared for a user that does not exist, which takes as long

	mu    sync.Mutex        // guards what follows
	right map[string][]byte // by user
}

// newPasswords are those with these hashes. Nothing is remembered of the file before: a password that was changed is wrong at once.
func newPasswords(hashes map[string]config.Secret) *passwords {
	p := &passwords{hashes: hashes, right: map[string][]byte{}}
	for _, hash := range hashes {
		p.any = hash
	}
	return p
}

// remembered reports whether a password was right before, in microseconds.
func (p *passwords) remembered(user, password string) bool {
	p.mu.Lock()
	right := p.right[user]
	p.mu.Unlock()
	return hmac.Equal(right, p.sum(user, password))
}

// compare reports whether a password is right, and remembers one that is.
func (p *passwords) compare(user, password string) bool {
	hash, exists := p.hashes[user]
	if !exists {
		hash = p.any
	}
	if bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil || !exists {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.right[user] = p.sum(user, password)
	return true
}

// sum is what is remembered in the place of a password, with the user's bcrypt hash as the key.
func (p *passwords) sum(user, password string) []byte {
	h := hmac.New(sha256.New, []byte(p.hashes[user]))
	h.Write([]byte(password))
	return h.Sum(nil)
}

// maxGuesses is how many passwords of one host may wait for their comparison: more than a balancer has scrapers behind it when all of
// them come for the first time.
const maxGuesses = 64

// turns has the comparisons of a host wait for each other, and those of all hosts for half of the processors. So hosts take turns,
// each with one at a time.
type turns struct {
	all *semaphore.Weighted

	mu    sync.Mutex // guards what follows
	hosts map[string]*host
}

// host is one that compares or waits.
type host struct {
	n   int // how many
	own *semaphore.Weighted
}

// newTurns has the other half of the processors left for requests whose passwords are known.
func newTurns() *turns {
	return &turns{all: semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/2))), hosts: map[string]*host{}}
}

// take waits for the turn of a host, and compares then. The error is at once that too many wait, or later the end of ctx.
func (t *turns) take(ctx context.Context, name string, compare func()) error {
	t.mu.Lock()
	h := t.hosts[name]
	if h == nil {
		h = &host{own: semaphore.NewWeighted(1)}
		t.hosts[name] = h
	}
	if h.n == maxGuesses {
		t.mu.Unlock()
		return errors.New("too many passwords of this host are being compared")
	}
	h.n++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(t.hosts, name)
		}
	}()
	for _, turn := range []*semaphore.Weighted{h.own, t.all} {
		if err := turn.Acquire(ctx, 1); err != nil {
			return err
		}
		defer turn.Release(1)
	}
	compare()
	return nil
}
