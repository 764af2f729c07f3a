package cluster

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const requestPause = 10 * time.Minute // after a refused CertificateSigningRequest, before the next one

// editRenewal edits the stored renewal of a certificate, and returns it.
type editRenewal func(ctx context.Context, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error)

// clientCertificates holds the client certificate of a region, and what is stored of its
// renewal. It uses the certificate that was issued last while that is valid, and
// otherwise the one of the access. It is safe for concurrent use.
type clientCertificates struct {
	given    nf.IssuedCertificate // of the access
	subject  pkix.Name            // of the certificates: the user and the groups
	lifetime int64                // seconds
	edit     editRenewal          // nil: the certificate is not renewed
	present  func(nf.IssuedCertificate) error
	clock    func() time.Time
	log      *slog.Logger // names the region
	delay    float64      // of renewals, between 0 and 1, so that replicas do not renew together

	mu       sync.Mutex
	stored   nf.CertificateRenewal
	shown    nf.IssuedCertificate // to the API server
	approval time.Time            // the service does not try to approve a request before
	failure  error                // of the last attempt to renew; nil: it did not fail
	failing  time.Time            // since when renewals fail
}

const defaultCertificateLife = 24 * 60 * 60 // seconds

// accessCertificates returns the certificates of an access whose certificate is
// renewed. Without Renewal in the pool's configuration, it renews nothing.
func (bt *breakerTransport) accessCertificates(access nf.Access) (*clientCertificates, error) {
	leaf, err := leafOf(access.Certificate)
	if err != nil {
		return nil, err
	}
	cs := &clientCertificates{
		given:    nf.IssuedCertificate{Certificate: access.Certificate, Key: access.Key, Issued: leaf.NotBefore, Expires: chainExpiry(access.Certificate)},
		subject:  pkix.Name{CommonName: leaf.Subject.CommonName, Organization: leaf.Subject.Organization},
		lifetime: access.Rotation.Lifetime, present: bt.present, clock: bt.cfg.Clock, log: bt.tokenLog(), delay: rand.Float64(),
	}
	if cs.lifetime == 0 {
		cs.lifetime = defaultCertificateLife
	}
	if bt.cfg.Renewal != nil {
		cs.edit = func(ctx context.Context, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error) {
			return bt.cfg.Renewal(ctx, bt.region, access, edit)
		}
	}
	cs.shown = cs.given
	cs.offer(access.CertificateRenewal)
	cs.choose()
	return cs, nil
}

// leafOf returns the first certificate of a PEM chain.
func leafOf(chain []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(chain)
	if block == nil {
		return nil, errors.New("it is not a PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// offer takes over what another replica may have stored. An issued certificate that
// expires earlier than the known one is from an earlier reading.
func (cs *clientCertificates) offer(r *nf.CertificateRenewal) {
	if r == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	known := cs.stored.Issued
	if cs.stored = r.Clone(); known != nil && !later(cs.stored.Issued, known) {
		cs.stored.Issued = known
	}
}

// later reports whether a certificate expires later than another one.
func later(c, than *nf.IssuedCertificate) bool {
	return c != nil && (than == nil || c.Expires.After(than.Expires))
}

// choose makes the region use the certificate that was issued last, or the one of the
// access when that has expired.
func (cs *clientCertificates) choose() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	best, now := cs.given, cs.clock()
	if issued := cs.stored.Issued; issued != nil && (now.Before(issued.Expires) || !now.Before(cs.given.Expires)) {
		best = *issued
	}
	if string(best.Certificate) == string(cs.shown.Certificate) {
		return
	}
	if err := cs.present(best); err != nil {
		cs.failure = err
		return
	}
	cs.shown = best
}

// due reports whether a certificate is to be requested. The certificate of the access
// is renewed at once, so that a missing permission is known before it expires.
func (cs *clientCertificates) due(r nf.CertificateRenewal) bool {
	now := cs.clock()
	if r.Refusal != nil && now.Before(r.Refusal.Time.Add(requestPause)) {
		return false
	}
	return r.Issued == nil || !now.Before(renewalTime(r.Issued.Issued, r.Issued.Expires, cs.delay))
}

// pending returns the request that is not answered. If there is none and a certificate
// is due, it stores a new one first: whatever happens next, another replica or the next
// start continues it. It returns nil if nothing is to be done.
func (cs *clientCertificates) pending(ctx context.Context) (*nf.CertificateRequest, error) {
	cs.mu.Lock()
	stored := cs.stored
	cs.mu.Unlock()
	if stored.Request != nil || !cs.due(stored) {
		return stored.Request, nil
	}
	mine, err := newRequest(cs.clock())
	if err != nil {
		return nil, err
	}
	stored, err = cs.store(ctx, func(r *nf.CertificateRenewal) {
		if r.Request == nil && cs.due(*r) {
			r.Request = &mine
		}
	})
	return stored.Request, err
}

// errNotKept is the error of a renewal that cannot be stored. Its cause is logged: the
// region's users need not know the store.
var errNotKept = errors.New("the service cannot store it at present")

// store edits what is stored, and takes it over.
func (cs *clientCertificates) store(ctx context.Context, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error) {
	stored, err := cs.edit(ctx, edit)
	if err != nil {
		if ctx.Err() == nil {
			cs.log.WarnContext(ctx, "failed to store the renewal of a client certificate", "error", err.Error())
		}
		return nf.CertificateRenewal{}, errNotKept
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stored = stored.Clone()
	return cs.stored, nil
}

// refuse stores that a request was answered without a certificate that can be used, and
// returns that as an error.
func (cs *clientCertificates) refuse(ctx context.Context, r nf.CertificateRequest, cause string) error {
	refusal := nf.CertificateRefusal{Name: r.Name, Cause: "CertificateSigningRequest " + r.Name + " " + cause, Time: cs.clock().UTC()}
	_, err := cs.store(ctx, func(stored *nf.CertificateRenewal) {
		if stored.Request != nil && stored.Request.Name == r.Name {
			if former := stored.Refusal; former != nil {
				refusal.Since = former.First()
			}
			stored.Request, stored.Refusal = nil, &refusal
		}
	})
	if err == nil {
		err = errors.New(refusal.Cause)
	}
	return err
}

// issued stores a certificate, unless one that expires later is stored.
func (cs *clientCertificates) issued(ctx context.Context, r nf.CertificateRequest, c nf.IssuedCertificate) error {
	_, err := cs.store(ctx, func(stored *nf.CertificateRenewal) {
		if !later(stored.Issued, &c) {
			stored.Issued, stored.Refusal = &c, nil
		}
		if stored.Request != nil && stored.Request.Name == r.Name {
			stored.Request = nil
		}
	})
	return err
}

// conclude records the result of an attempt to renew. Only the first failure is logged.
func (cs *clientCertificates) conclude(ctx context.Context, err error) {
	cs.mu.Lock()
	before := cs.failure
	if err == nil && before != nil && cs.stored.Refusal != nil {
		err = before // only a pause: nothing was renewed
	}
	if cs.failure = err; err != nil && before == nil {
		cs.failing = cs.clock()
		if r := cs.stored.Request; r != nil && r.Created.Before(cs.failing) {
			cs.failing = r.Created
		}
		if r := cs.stored.Refusal; r != nil && r.First().Before(cs.failing) {
			cs.failing = r.First()
		}
	}
	cs.mu.Unlock()
	switch {
	case err != nil && before == nil:
		cs.log.WarnContext(ctx, "failed to renew the client certificate of a cloud region", "error", tokenCause(err))
	case err == nil && before != nil:
		cs.log.InfoContext(ctx, "client certificate of a cloud region can be renewed again")
	}
}

// progress returns how far the renewal is.
func (cs *clientCertificates) progress() renewalProblem {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	p := renewalProblem{failure: cs.failure, since: cs.failing, expires: cs.shown.Expires}
	if refusal := cs.stored.Refusal; p.failure == nil && refusal != nil {
		p.failure, p.since = errors.New(refusal.Cause), refusal.First()
	}
	if cs.stored.Request != nil {
		p.request = cs.stored.Request.Name
	}
	return p
}
