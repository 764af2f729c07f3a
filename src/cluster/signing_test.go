package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	signing "k8s.io/api/certificates/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCertificateLife passes the life of a client certificate that is renewed.
func TestCertificateLife(t *testing.T) {
	a := newAuthority(t)
	c, ctx := a.open(), t.Context()
	var log []string
	steps := []struct {
		reason string
		after  time.Duration
		change func(*authority)
		posts  int    // requests that were created so far
		user   string // serial number of the certificate that the region uses then
		failed bool
	}{
		{"the given certificate is renewed at once", 0, func(*authority) {}, 1, "101", false},
		{"the approved request is answered", 0, func(*authority) {}, 1, "101", false},
		{"the new certificate is used", 0, func(*authority) {}, 1, "102", false},
		{"and not renewed before two thirds of its life", 15 * time.Hour, func(*authority) {}, 1, "102", false},
		{"then it is, within a tenth of it", 4 * time.Hour, func(*authority) {}, 2, "102", false},
		{"by the certificate that it has", 0, func(*authority) {}, 2, "102", false},
		{"the next one is used", 0, func(*authority) {}, 2, "103", false},
		{"while it cannot be renewed, it is used", 19 * time.Hour, func(a *authority) { a.refused = 403 }, 2, "103", true},
		{"when it has expired, the given one is", 6 * time.Hour, func(*authority) {}, 2, "101", true},
		{"which can be renewed", 0, func(a *authority) { a.refused = 0 }, 3, "101", false},
		{"the answer is stored later", 0, func(a *authority) { a.fails = errors.New(secret) }, 3, "101", true},
		{"without another request", 0, func(a *authority) { a.fails = nil }, 3, "101", false},
		{"and is used then", 0, func(*authority) {}, 3, "104", false},
	}
	for _, step := range steps {
		a.set(func(a *authority) { a.pass(step.after); step.change(a) })
		state := round(ctx, c)
		posts := a.count("POST")
		user := a.users[len(a.users)-1]
		log = append(log, state.Message)
		if posts != step.posts || user != step.user || (!state.Credential.Failing.IsZero()) != step.failed || !state.Credential.Rotates || state.Condition == nf.RegionUnreachable {
			t.Fatalf("%s: %d requests, certificate %s; want %d, %s, failed %t; %+v", step.reason, posts, user, step.posts, step.user, step.failed, state)
		}
	}
	if text := fmt.Sprintf("%q %+v", log, a.access()); strings.Contains(text, secret) || strings.Contains(text, "PRIVATE") {
		t.Errorf("a secret is shown: %s", text)
	}
}

// TestCertificateAnswers holds what is told of requests that get no certificate that can
// be used. The region is used with the certificate that it has.
func TestCertificateAnswers(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(*authority)
		then    func(*authority) // after the request has been created
		want    string
		refused bool // the answer is final for the request
	}{
		"NotApproved": {"an operator must approve it", func(a *authority) { a.mayApprove = false }, func(*authority) {}, "waits for approval (kubectl certificate approve k8splugin-", false},
		"Denied":      {"an operator does not want it", func(a *authority) { a.mayApprove = false }, func(a *authority) { a.answer(a.name(), signing.CertificateDenied) }, "was denied", true},
		"Failed":      {"the signer cannot", func(a *authority) { a.unsigned = true }, func(a *authority) { a.answer(a.name(), signing.CertificateFailed) }, "failed", true},
		"Unsigned":    {"there is no signer", func(a *authority) { a.unsigned = true }, func(a *authority) { a.pass(signTime + time.Second) }, "must have a signer for kubernetes.io/kube-apiserver-client", false},
		"OtherUser":   {"a certificate with another common name", func(a *authority) { a.alter = func(c, _ *x509.Certificate) { c.Subject.CommonName = "other" } }, func(*authority) {}, "of another user", true},
		"OtherGroups": {"a certificate with other groups", func(a *authority) { a.alter = func(c, _ *x509.Certificate) { c.Subject.Organization = nil } }, func(*authority) {}, "of another user", true},
		"OtherKey":    {"a certificate for another key", func(a *authority) { a.alter = func(c, ca *x509.Certificate) { c.PublicKey = ca.PublicKey } }, func(*authority) {}, "for another key", true},
		"Expired":     {"a certificate that cannot be used", func(*authority) {}, func(a *authority) { a.pass(25 * time.Hour) }, "has expired", true},
		"Garbage":     {"not a certificate", func(*authority) {}, func(a *authority) { a.objects[a.name()].Status.Certificate = []byte(secret) }, "no certificate that can be read", true},
		"NotAccepted": {"a certificate of another CA", func(a *authority) { a.revoked = true }, func(*authority) {}, "does not accept", true},
		"Replaced":    {"an object of another user", func(a *authority) { a.mayApprove = false }, func(a *authority) { a.objects[a.name()].Spec.Request = []byte(secret) }, "was replaced by another object", true},
		"Forbidden":   {"the missing rule is named", func(a *authority) { a.refused = 403 }, func(*authority) {}, `resources ["certificatesigningrequests"], verbs ["create", "get"]`, false},
		"NotServed":   {"a server without the API", func(a *authority) { a.refused = 404 }, func(*authority) {}, "does not serve certificates.k8s.io/v1", false},
		"Rejected":    {"any other answer", func(a *authority) { a.refused = 422 }, func(*authority) {}, "answers 422", false},
		"NotStored":   {"nothing is requested that would be lost", func(a *authority) { a.fails = errors.New(secret) }, func(*authority) {}, "cannot store it", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.set(tc.change)
			c := a.open()
			round(t.Context(), c)
			a.set(tc.then)
			state := round(t.Context(), c)
			given := chainExpiry(a.access().Certificate)
			if state.Condition != nf.RegionExpiring || !strings.Contains(state.Message, tc.want) || strings.Contains(state.Message, secret) ||
				state.Credential.Failing.IsZero() || !state.Credential.Expires.Equal(given) {
				t.Errorf("%s: %+v, want %q", tc.reason, state, tc.want)
			}
			if r := a.access().CertificateRenewal; tc.refused != (r != nil && r.Refusal != nil) || tc.refused != (state.Credential.Request == "") && a.fails == nil {
				t.Errorf("%s: %+v is stored, %q is pending", tc.reason, r, state.Credential.Request)
			}
			if err := c.tryNodes(t.Context()); err != nil {
				t.Errorf("%s: the given certificate is used: %v", tc.reason, err)
			}
			if !tc.refused {
				return
			}
			if other := round(t.Context(), a.open()); other.Message != state.Message {
				t.Errorf("%s: another replica says %q, want %q", tc.reason, other.Message, state.Message)
			}
			if n := len(a.objects); n != 1 {
				t.Errorf("%s: %d requests, want one before the pause ends", tc.reason, n)
			}
			a.set(func(a *authority) { a.pass(requestPause) })
			round(t.Context(), c)
			if n := len(a.objects); n != 2 {
				t.Errorf("%s: %d requests, want another one after the pause", tc.reason, n)
			}
		})
	}
}

// TestCertificateRefusedAgain refuses several requests: the renewal fails since the first one.
func TestCertificateRefusedAgain(t *testing.T) {
	a := newAuthority(t)
	a.set(func(a *authority) { a.alter = func(c, _ *x509.Certificate) { c.Subject.CommonName = "other" } })
	c := a.open()
	round(t.Context(), c)
	first := round(t.Context(), c).Credential.Failing
	for range 3 {
		a.set(func(a *authority) { a.pass(requestPause) })
		for range 2 { // a request, and its pause
			for _, state := range []nf.RegionState{round(t.Context(), c), round(t.Context(), a.open())} {
				if state.Credential.Failing.IsZero() || state.Credential.Failing.After(first) {
					t.Errorf("it fails since %v, want %v", state.Credential.Failing, first)
				}
			}
		}
	}
	if len(a.objects) != 4 {
		t.Errorf("%d requests, want 4", len(a.objects))
	}
	a.set(func(a *authority) { a.alter = func(*x509.Certificate, *x509.Certificate) {}; a.pass(requestPause) })
	round(t.Context(), c)
	if state := round(t.Context(), c); !state.Credential.Failing.IsZero() || state.Condition != nf.RegionAvailable {
		t.Errorf("after a renewal: %+v", state)
	}
}

// tryNodes sends a request.
func (c *Cluster) tryNodes(ctx context.Context) error {
	c.checkReady(ctx)
	if s := c.state(time.Hour); s.Condition == nf.RegionUnreachable {
		return errors.New(s.Message)
	}
	return nil
}

// TestCertificateShorter gets a certificate whose life is shorter than asked.
func TestCertificateShorter(t *testing.T) {
	a := newAuthority(t)
	a.set(func(a *authority) {
		a.alter = func(c, _ *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Hour) }
	})
	c := a.open()
	round(t.Context(), c)
	round(t.Context(), c)
	a.set(func(a *authority) { a.pass(39 * time.Minute) })
	if round(t.Context(), c); a.count("POST") != 1 {
		t.Error("it is renewed too early")
	}
	a.set(func(a *authority) { a.pass(7 * time.Minute) })
	if round(t.Context(), c); a.count("POST") != 2 {
		t.Error("it is renewed after two thirds of the life that it has")
	}
}

// TestCertificateEarlier gets a certificate that expires before the one that it would
// replace.
func TestCertificateEarlier(t *testing.T) {
	a := newAuthority(t)
	c := a.open()
	round(t.Context(), c)
	round(t.Context(), c)
	present := a.access().CertificateRenewal.Issued
	a.set(func(a *authority) {
		a.alter = func(c, _ *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Hour) }
	})
	a.pass(19 * time.Hour)
	round(t.Context(), c)
	state := round(t.Context(), c)
	if !strings.Contains(state.Message, "expires before the present one") || !state.Credential.Expires.Equal(present.Expires) {
		t.Errorf("the present certificate stays: %+v", state)
	}
}

// TestCertificateApprovedLater lets an operator approve the request.
func TestCertificateApprovedLater(t *testing.T) {
	a := newAuthority(t)
	a.mayApprove = false
	c := a.open()
	began := a.clock()
	for range 3 {
		round(t.Context(), c)
	}
	if n := a.count("PUT"); n != 1 {
		t.Errorf("%d attempts to approve it, want 1", n)
	}
	a.set(func(a *authority) { a.pass(time.Hour) })
	late := round(t.Context(), a.open()) // a replica that starts later
	if late.Credential.Request != a.name() || !late.Credential.Failing.Equal(began) || a.count("POST") != 1 {
		t.Errorf("another replica waits for the same request since %v: %+v", began, late)
	}
	a.set(func(a *authority) { a.answer(a.name(), signing.CertificateApproved) })
	state := round(t.Context(), c)
	if state.Credential.Request != "" || !state.Credential.Failing.IsZero() || state.Condition != nf.RegionAvailable {
		t.Errorf("the certificate is used: %+v", state)
	}
}

// TestCertificateReplicas renews the certificate in several replicas at once.
func TestCertificateReplicas(t *testing.T) {
	a := newAuthority(t)
	replicas := []*Cluster{a.open(), a.open(), a.open()}
	for range 3 {
		var all sync.WaitGroup
		for _, c := range replicas {
			all.Go(func() { round(t.Context(), c) })
		}
		all.Wait()
		for _, c := range replicas { // as the pool does when it reads the regions
			c.transport.offer(a.access())
		}
	}
	a.set(func(a *authority) { a.users = nil })
	for _, c := range replicas {
		if s := round(t.Context(), c); s.Condition != nf.RegionAvailable || s.Credential.Request != "" {
			t.Errorf("a replica is %+v", s)
		}
	}
	if users := slices.Compact(a.users); len(a.objects) != 1 || len(users) != 1 || users[0] != "102" {
		t.Errorf("%d requests, certificates %v; want one that all use", len(a.objects), users)
	}
}

// TestCertificateDeath ends a replica before and after each of its steps. The next one
// continues with the same request.
func TestCertificateDeath(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			a := newAuthority(t)
			ctx, die := context.WithCancel(t.Context())
			seen, step := 0, ""
			a.at = func(name string, is bool) bool {
				if is == after && ctx.Err() == nil {
					if seen++; seen == n {
						step = name
						die()
					}
				}
				return ctx.Err() != nil && is == after
			}
			c := a.open()
			for range 3 {
				round(ctx, c)
			}
			dead := ctx.Err() != nil
			die()
			a.set(func(a *authority) { a.at = func(string, bool) bool { return false } })
			pending := a.access().CertificateRenewal
			next := a.open()
			for range 3 {
				round(t.Context(), next)
			}
			r := a.access().CertificateRenewal
			if len(a.objects) != 1 || r == nil || r.Issued == nil || r.Request != nil || r.Refusal != nil || a.users[len(a.users)-1] == "101" {
				t.Errorf("death %d (%s, after it: %t): %d requests, %+v", n, step, after, len(a.objects), r)
			}
			if pending != nil && pending.Request != nil && string(pending.Request.Key) != string(r.Issued.Key) {
				t.Errorf("death %d (%s, after it: %t): the key that was stored is not used", n, step, after)
			}
			if !dead {
				if n < 6 {
					t.Errorf("only %d steps", n-1)
				}
				break
			}
		}
	}
}

// TestCertificateOfMasters opens no region whose certificate cannot be renewed.
func TestCertificateOfMasters(t *testing.T) {
	a := newAuthority(t)
	key := mustKey(t)
	user := operator
	user.Organization = []string{"system:masters"}
	access := a.access()
	access.Certificate, access.Key = a.signed(user, &key.PublicKey, time.Hour), keyPEM(t, key)
	_, err := New(PoolConfig{Clock: a.clock}).Open("east", access)
	if nf.KindOf(err) != nf.Invalid || len(a.journal) > 0 {
		t.Errorf("got %v", err)
	}
	access = a.access()
	c, err := local(t).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	if state := round(t.Context(), c); state.Condition != nf.RegionAvailable || len(a.objects) > 0 {
		t.Errorf("a pool that cannot store certificates requests none: %+v", state)
	}
}

// FuzzIsOurs decides about objects that any user may have written.
func FuzzIsOurs(f *testing.F) {
	r, err := newRequest(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	cs := &clientCertificates{subject: operator, lifetime: 600}
	f.Add([]byte(""))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		object := signing.CertificateSigningRequest{Spec: signing.CertificateSigningRequestSpec{SignerName: signing.KubeAPIServerClientSignerName, Request: request}}
		if isOurs(object, cs, r) {
			t.Error("a request that this service has not made")
		}
	})
}
