package access

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Authenticator proves who makes a request. It is safe for concurrent use.
type Authenticator struct {
	rules     *Rules
	now       func() time.Time
	throttle  *throttle
	passwords *passwords
	issuers   *issuers
}

// NewAuthenticator returns an authenticator by the rules.
func NewAuthenticator(rules *Rules) *Authenticator {
	now := rules.cfg.Clock
	return &Authenticator{
		rules: rules, now: now, throttle: newThrottle(now), passwords: newPasswords(now),
		issuers: newIssuers(now, rules.cfg.Logger),
	}
}

// Authenticate returns who makes a request: nf.Unauthenticated when it offers
// no proof or a wrong one, nf.TooMany when its address has failed too often, and
// nf.Unreachable when the issuer of its token cannot be asked. A request that
// has an Authorization header is judged by it, whatever its certificate.
func (a *Authenticator) Authenticate(r *http.Request) (nf.Identity, error) {
	rules := a.rules.current(r.Context())
	offered := r.Header.Values("Authorization")
	if len(offered) == 0 {
		id, found, err := rules.proven(r, a.now())
		if err == nil && !found {
			err = unknown(errors.New("it offers no proof of who makes it"))
		}
		return id, err
	}
	if len(offered) > 1 {
		return a.failed(r, unknown(errors.New("it has several Authorization headers")))
	}
	scheme, proof, _ := strings.Cut(offered[0], " ")
	if strings.EqualFold(scheme, "Basic") {
		return a.basic(r, rules)
	}
	id, err := a.bearer(r, rules, scheme, strings.TrimSpace(proof))
	if nf.KindOf(err) == nf.Unauthenticated {
		return a.failed(r, err)
	}
	return id, err
}

// failed counts a failure against the address that it comes from, which after
// too many of them is told nothing else.
func (a *Authenticator) failed(r *http.Request, err error) (nf.Identity, error) {
	end, after := a.throttle.begin(addressOf(r))
	if end == nil {
		return nf.Identity{}, tooMany(after)
	}
	end(true)
	return nf.Identity{}, err
}

// Challenges returns the values of WWW-Authenticate for a refused request.
func (a *Authenticator) Challenges() []string {
	return []string{`Bearer realm="k8splugin"`, `Basic realm="k8splugin", charset="UTF-8"`}
}

func (a *Authenticator) bearer(r *http.Request, rules *version, scheme, proof string) (nf.Identity, error) {
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
	case strings.HasPrefix(proof, tokenPrefix):
		return rules.token(proof, a.now())
	case rules.oidc != nil:
		return a.issuers.of(*rules.oidc).identity(r.Context(), proof)
	}
	return nf.Identity{}, unknown(errors.New("its Authorization header is of no kind that is taken here"))
}

// basic proves a user by a password. A user that does not exist costs as much
// as one that does.
func (a *Authenticator) basic(r *http.Request, rules *version) (nf.Identity, error) {
	name, password, ok := r.BasicAuth()
	u, exists := rules.users[name]
	if exists && a.passwords.remembered(u.hash, password) {
		return nf.Identity{Kind: kindUser, Name: name, Groups: u.groups}, nil
	}
	if !exists {
		u = user{hash: rules.decoy}
	}
	// Before the work is done: nobody has us guess for nothing.
	end, after := a.throttle.begin(addressOf(r))
	if end == nil {
		return nf.Identity{}, tooMany(after)
	}
	proven := ok && u.hash != nil && a.passwords.right(u.hash, password) && exists
	end(!proven)
	if !proven {
		return nf.Identity{}, unknown(errors.New("the user or the password is wrong"))
	}
	return nf.Identity{Kind: kindUser, Name: name, Groups: u.groups}, nil
}

// token proves a service by its token. What is looked up is the token's hash,
// so that the time it takes says nothing of the token.
func (v *version) token(proof string, now time.Time) (nf.Identity, error) {
	t, ok := v.tokens[sha256.Sum256([]byte(proof))]
	if !ok || !t.expires.IsZero() && !now.Before(t.expires) {
		return nf.Identity{}, unknown(errors.New("the service token is not known, or has expired"))
	}
	return nf.Identity{Kind: kindToken, Name: t.name, Groups: t.groups}, nil
}

func unknown(cause error) error {
	return nf.E(nf.Unauthenticated, "authenticate", "the request", cause)
}

func tooMany(after time.Duration) error {
	return &nf.Error{Kind: nf.TooMany, Op: "authenticate", Subject: "the request", After: after,
		Err: errors.New("its address has failed to do so too often")}
}
