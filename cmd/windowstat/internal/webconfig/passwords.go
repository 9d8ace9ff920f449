package webconfig

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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

func (p *passwords) sum(user, password string) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(user + ":" + password)) // a user has no colon
	return h.Sum(nil)
}
