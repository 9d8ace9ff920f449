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

// passwords checks the passwords of the users of a file. A comparison with bcrypt takes about fifty milliseconds of CPU
// time, so the last verified password of each user is cached, as a hash keyed with the bcrypt hash. The cached hash is
// useless without the bcrypt hash. Wrong passwords are not cached.
//
// The cache is part of the configuration that was loaded with the hashes, so a new configuration has an empty cache.
// The checks take two steps: isVerified is cheap and runs for each request, and compare is expensive and runs in a
// fairQueue.
type passwords struct {
	hashes map[string]config.Secret // by user
	// any is one of the hashes. All hashes of a file usually have the same cost, so a comparison with any of them takes
	// the usual time.
	any config.Secret // for comparisons of unknown users, which must take as long

	mu       sync.Mutex        // guards verified
	verified map[string][]byte // hashes from sum, by user
}

// newPasswords returns passwords with an empty cache. A password that was removed from the file is therefore wrong
// immediately.
func newPasswords(hashes map[string]config.Secret) *passwords {
	p := &passwords{hashes: hashes, verified: map[string][]byte{}}
	for _, hash := range hashes {
		p.any = hash
	}
	return p
}

// isVerified reports whether a password was verified before. The check takes microseconds.
func (p *passwords) isVerified(user, password string) bool {
	p.mu.Lock()
	cached := p.verified[user]
	p.mu.Unlock()
	return hmac.Equal(cached, p.sum(user, password))
}

// compare reports whether a password is right, and caches a right one.
func (p *passwords) compare(user, password string) bool {
	// Compare the password of an unknown user, too. Otherwise the short time of the response would reveal that there is
	// no such user.
	hash, exists := p.hashes[user]
	if !exists {
		hash = p.any
	}
	if bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil || !exists {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verified[user] = p.sum(user, password)
	return true
}

// sum returns the hash of a password for the cache, keyed with the user's bcrypt hash.
func (p *passwords) sum(user, password string) []byte {
	// An unknown user has an empty key. The cache has no hash of an unknown user, so isVerified returns false.
	h := hmac.New(sha256.New, []byte(p.hashes[user]))
	h.Write([]byte(password))
	return h.Sum(nil)
}

// maxGuesses is the maximum number of comparisons of one host that run or wait. It is more than the number of scrapers
// behind a load balancer, which may all need their first comparison at the same time.
const maxGuesses = 64

// fairQueue runs comparisons. Each host has one running comparison at a time, and all hosts share half of the
// processors. Hosts therefore alternate, and many guesses of one host do not delay another one.
//
// A waiting comparison takes no processor time, only a goroutine and an entry in hosts. maxGuesses limits both for a
// host.
type fairQueue struct {
	all *semaphore.Weighted

	mu    sync.Mutex // guards hosts
	hosts map[string]*host
}

// host is a client host with comparisons that run or wait.
type host struct {
	// The entry is removed when n is 0, so the map has only hosts with a comparison.
	n int // number of comparisons
	// own has a weight of 1: one comparison of the host runs at a time.
	own *semaphore.Weighted
}

// newFairQueue returns an empty queue. The other half of the processors remains for requests with verified passwords.
func newFairQueue() *fairQueue {
	return &fairQueue{all: semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/2))), hosts: map[string]*host{}}
}

// do waits until the host may compare, and calls compare. It returns an error immediately if the host has maxGuesses
// comparisons, and when ctx ends before the comparison.
func (q *fairQueue) do(ctx context.Context, name string, compare func()) error {
	q.mu.Lock()
	h := q.hosts[name]
	if h == nil {
		h = &host{own: semaphore.NewWeighted(1)}
		q.hosts[name] = h
	}
	if h.n == maxGuesses {
		q.mu.Unlock()
		return errors.New("too many passwords of this host are waiting for their comparison")
	}
	h.n++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(q.hosts, name)
		}
	}()
	// Acquire own before all. In the opposite order, the waiting comparisons of one host would occupy all slots, and
	// comparisons of other hosts would wait.
	for _, s := range []*semaphore.Weighted{h.own, q.all} {
		if err := s.Acquire(ctx, 1); err != nil {
			return err
		}
		defer s.Release(1)
	}
	compare()
	return nil
}
