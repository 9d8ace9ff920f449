package webconfig

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"

	"github.com/prometheus/common/config"
	"golang.org/x/crypto/bcrypt"
)

// passwords are those of the users of a file. A comparison with bcrypt takes some fifty milliseconds of a processor, so a password
// that was right is remembered: of each user the last one, as a hash with a key of this process. Guesses leave nothing behind.
type passwords struct {
	hashes map[string]config.Secret // by user
	any    config.Secret            // is compared for a user that does not exist, which takes as long
	key    []byte

	mu    sync.Mutex        // guards what follows
	right map[string][]byte // by user
}

// newPasswords are those with these hashes. Nothing is remembered of the file before: a password that was changed is wrong at once.
func newPasswords(hashes map[string]config.Secret) *passwords {
	p := &passwords{hashes: hashes, key: make([]byte, sha256.Size), right: map[string][]byte{}}
	for _, hash := range hashes {
		p.any = hash
	}
	_, _ = rand.Read(p.key) // never fails
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

// sum is what is remembered in the place of a password: of no use without the key.
func (p *passwords) sum(user, password string) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(user + ":" + password)) // a user has no colon
	return h.Sum(nil)
}

// maxGuesses is how many passwords of one host may wait for their comparison: more than a balancer has scrapers behind it when all of
// them come for the first time.
const maxGuesses = 64

// errTooManyGuesses is why a host has no turn.
var errTooManyGuesses = errors.New("too many passwords of this host are being compared")

// turns has the comparisons of a host wait for each other, and those of all hosts for half of the processors. So hosts take turns,
// each with one at a time.
type turns struct {
	all chan struct{} // holds those that compare

	mu    sync.Mutex // guards what follows
	hosts map[string]*host
}

// host is one that compares or waits.
type host struct {
	n   int           // how many
	own chan struct{} // holds the one whose turn it is
}

// newTurns has the other half of the processors left for requests whose passwords are known.
func newTurns() *turns {
	return &turns{all: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), hosts: map[string]*host{}}
}

// wait waits for the turn of a host, and returns the function that ends it. The error is errTooManyGuesses at once, or the end of ctx.
func (t *turns) wait(ctx context.Context, name string) (end func(), err error) {
	t.mu.Lock()
	h := t.hosts[name]
	if h == nil {
		h = &host{own: make(chan struct{}, 1)}
		t.hosts[name] = h
	}
	if h.n == maxGuesses {
		t.mu.Unlock()
		return nil, errTooManyGuesses
	}
	h.n++
	t.mu.Unlock()
	held := make([]chan struct{}, 0, 2)
	end = func() {
		for _, c := range held {
			<-c
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(t.hosts, name)
		}
	}
	for _, c := range []chan struct{}{h.own, t.all} {
		select {
		case c <- struct{}{}:
			held = append(held, c)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		}
	}
	return end, nil
}
