package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/singleflight"
)

const (
	rememberFor  = time.Minute // how long a right password is cached
	maxPassword  = 72          // bytes; bcrypt ignores the rest
	maxPasswords = 4096        // that are cached
)

// passwords compares passwords with bcrypt hashes, which is slow on purpose. A
// right password is compared only once a minute, and the number of concurrent
// comparisons is limited to leave CPU for other work.
type passwords struct {
	now   func() time.Time
	key   [32]byte // random, so that the cached sums are useless elsewhere
	once  singleflight.Group
	slots chan struct{}

	compare func(hash, password []byte) error // bcrypt's, except in tests

	mu    sync.Mutex
	known *simplelru.LRU[sum, time.Time] // when each right password is forgotten
}

type sum [sha256.Size]byte

func newPasswords(now func() time.Time) *passwords {
	known, _ := simplelru.NewLRU[sum, time.Time](maxPasswords, nil) // fails only for a size below 1
	p := &passwords{now: now, compare: bcrypt.CompareHashAndPassword, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), known: known}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// remembered reports whether the password was right within rememberFor.
func (p *passwords) remembered(hash []byte, password string) bool {
	s := p.sum(hash, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.known.Get(s)
	return ok && p.now().Before(until)
}

// right compares a password. Its duration does not depend on the result.
func (p *passwords) right(hash []byte, password string) bool {
	s := p.sum(hash, password)
	outcome, _, _ := p.once.Do(string(s[:]), func() (any, error) {
		if p.remembered(hash, password) {
			return true, nil // another request has compared it in the meantime
		}
		p.slots <- struct{}{}
		defer func() { <-p.slots }()
		fits := len(password) <= maxPassword
		if !fits {
			password = password[:maxPassword] // a password that is too long takes as long
		}
		right := p.compare(hash, []byte(password)) == nil && fits
		if right {
			p.remember(s)
		}
		return right, nil
	})
	right, _ := outcome.(bool)
	return right
}

func (p *passwords) remember(s sum) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.Add(s, p.now().Add(rememberFor))
}

// sum identifies a password and its hash. After a password change the sum
// differs, so the cache does not match.
func (p *passwords) sum(hash []byte, password string) (s sum) {
	mac := hmac.New(sha256.New, p.key[:])
	fmt.Fprintf(mac, "%d:", len(hash)) // unambiguous separation of hash and password
	mac.Write(hash)
	mac.Write([]byte(password))
	mac.Sum(s[:0])
	return s
}
