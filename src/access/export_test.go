package access

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// May is the check behind the methods of the guarded parts.
func (g *Guarded) May(ctx context.Context, p nf.Permission, s nf.Scope) error {
	return g.guard.may(ctx, p, s)
}

// Cheapen makes an authenticator compare passwords with the given ones, by their
// hashes: bcrypt takes seconds under the race detector. It returns a function that
// returns the number of comparisons.
func Cheapen(a *Authenticator, plain map[string]string) (compared func() int64) {
	var n atomic.Int64
	a.passwords.compare = func(hash, password []byte) error {
		n.Add(1)
		if plain[string(hash)] == "" || plain[string(hash)] != string(password) {
			return errors.New("the password differs")
		}
		return nil
	}
	return n.Load
}

// Matches reports whether a pattern matches.
func Matches(text string, separator byte, s string) bool { return pattern{text, separator}.matches(s) }

// NewThrottle returns a function that begins an attempt, and one that counts the
// addresses.
func NewThrottle(now func() time.Time) (begin func(addr string) (end func(failed bool), after time.Duration), addresses func() int) {
	t := newThrottle(now)
	return t.begin, func() int { return t.addresses.Len() }
}
