package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/singleflight"
)

const (
	rememberFor = time.Minute // that a password was right
	maxPassword = 72          // bytes; bcrypt does not look at more
)

// passwords compares passwords with their hashes. That takes long on purpose,
// so the same right password is compared once a minute only, and never more at
// once than leave room for other work.
type passwords struct {
	now   func() time.Time
	key   [32]byte // random, so that what is remembered is worth nothing elsewhere
	once  singleflight.Group
	slots chan struct{}

	compare func(hash, password []byte) error // as bcrypt does

	mu         sync.Mutex
	young, old map[sum]time.Time // until when a right one is remembered
}

type sum [sha256.Size]byte

func newPasswords(now func() time.Time) *passwords {
	p := &passwords{now: now, compare: bcrypt.CompareHashAndPassword, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), young: map[sum]time.Time{}}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// remembered reports whether the password was right a moment ago.
func (p *passwords) remembered(hash []byte, password string) bool {
	s := p.sum(hash, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.young[s]
	if !ok {
		until, ok = p.old[s]
	}
	return ok && p.now().Before(until)
}

// right compares a password. It takes as long whatever the outcome.
func (p *passwords) right(hash []byte, password string) bool {
	s := p.sum(hash, password)
	outcome, _, _ := p.once.Do(string(s[:]), func() (any, error) {
		p.slots <- struct{}{}
		defer func() { <-p.slots }()
		fits := len(password) <= maxPassword
		if !fits {
			password = password[:maxPassword] // one that is too long takes as long, too
		}
		return p.compare(hash, []byte(password)) == nil && fits, nil
	})
	if right, _ := outcome.(bool); !right {
		return false
	}
	p.remember(s)
	return true
}

func (p *passwords) remember(s sum) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.young) >= maxAddresses {
		p.old, p.young = p.young, map[sum]time.Time{}
	}
	p.young[s] = p.now().Add(rememberFor)
}

// sum names a password and the hash that it was compared with: a password that
// is changed is not remembered.
func (p *passwords) sum(hash []byte, password string) (s sum) {
	mac := hmac.New(sha256.New, p.key[:])
	fmt.Fprintf(mac, "%d:", len(hash)) // so that neither can pass for a part of the other
	mac.Write(hash)
	mac.Write([]byte(password))
	mac.Sum(s[:0])
	return s
}
