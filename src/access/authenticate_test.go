package access_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// request returns a request with an Authorization header, or without one if the
// header is empty.
func request(t *testing.T, authorization string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

// cheap returns an authenticator that compares passwords quickly, and a function
// that returns the number of comparisons.
func cheap(rules *access.Rules) (*access.Authenticator, func() int64) {
	a := access.NewAuthenticator(rules)
	plain := map[string]string{horse: "correct horse", staple: "battery staple", strings.Replace(staple, "$2a$", "$2y$", 1): "battery staple"}
	return a, access.Cheapen(a, plain)
}

// TestBcrypt compares a password with bcrypt, as the service does. Other tests use
// a faster comparison.
func TestBcrypt(t *testing.T) {
	t.Parallel()
	a := access.NewAuthenticator(rulesOf(t, newClock(), "users: [{name: ann, password_hash: '"+horse+"'}]\n", nil))
	if id, err := a.Authenticate(request(t, basic("ann", "correct horse"))); err != nil || id.String() != "user:ann" {
		t.Errorf("the right password is %v, %v", id, err)
	}
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	c := newClock()
	long := strings.Repeat("x", 73)
	rules := rulesOf(t, c, `
password_file: htpasswd
users:
- {name: ann, password_hash: "`+horse+`", groups: [ops, dev, ops]}
- {name: eve, groups: [dev]}
tokens:
- {name: so, sha256: `+tokenSum("viewer-all")+`, groups: [onap]}
- {name: old, sha256: `+tokenSum("stranger")+`, expires: 2026-11-04T12:00:00Z}
- {name: new, sha256: `+tokenSum("admin-a")+`, expires: 2026-11-04T12:00:01Z}
`, map[string]string{"htpasswd": "eve:" + staple + "\nbob:" + strings.Replace(staple, "$2a$", "$2y$", 1) + "\n"})
	bearer := func(who string) string { return "Bearer " + accesstest.Token(who) }
	cases := map[string]struct {
		reason string
		offer  string
		want   nf.Identity
		text   string // of the error; empty: the identity is authenticated
	}{
		"Password":      {"a password authenticates a user", basic("ann", "correct horse"), nf.Identity{Kind: "user", Name: "ann", Groups: []string{"dev", "ops"}}, ""},
		"Listed":        {"the password is in the password file, the groups are in the rules", basic("eve", "battery staple"), nf.Identity{Kind: "user", Name: "eve", Groups: []string{"dev"}}, ""},
		"FileOnly":      {"the user is only in the password file, as htpasswd writes it", basic("bob", "battery staple"), nf.Identity{Kind: "user", Name: "bob"}, ""},
		"Wrong":         {"a wrong password", basic("ann", "correct horse "), nf.Identity{}, "the user or the password is wrong"},
		"Others":        {"the password of another user", basic("ann", "battery staple"), nf.Identity{}, "the user or the password is wrong"},
		"NoUser":        {"the user does not exist, but the password is that of another user", basic("zoe", "correct horse"), nf.Identity{}, "the user or the password is wrong"},
		"Long":          {"bcrypt ignores all bytes after the first 72", basic("ann", long), nf.Identity{}, "the user or the password is wrong"},
		"NotBase64":     {"the header is not valid base64", "Basic !!!", nf.Identity{}, "the user or the password is wrong"},
		"Token":         {"a token authenticates a service", bearer("viewer-all"), nf.Identity{Kind: "token", Name: "so", Groups: []string{"onap"}}, ""},
		"Case":          {"the case of the scheme is ignored", "bearer  " + accesstest.Token("viewer-all"), nf.Identity{Kind: "token", Name: "so", Groups: []string{"onap"}}, ""},
		"Expired":       {"a token is invalid from its expiry on", bearer("stranger"), nf.Identity{}, "the service token is unknown or has expired"},
		"LastMoment":    {"a token is valid until its expiry", bearer("admin-a"), nf.Identity{Kind: "token", Name: "new"}, ""},
		"NoToken":       {"the token is unknown", "Bearer k8spt_unknown", nf.Identity{}, "the service token is unknown or has expired"},
		"JWT":           {"the rules do not trust an issuer of JWTs", "Bearer e30.e30.e30", nf.Identity{}, "its token is not a service token, and the access rules name no issuer of other tokens"},
		"Digest":        {"the scheme is not supported", "Digest username=ann", nf.Identity{}, "the scheme of its Authorization header is not supported"},
		"Nothing":       {"the request does not have credentials", "", nf.Identity{}, "it has no credentials; send a token, a user and password, or a client certificate"},
		"SchemeOnly":    {"the header has only a scheme", "Bearer", nf.Identity{}, "its token is not a service token, and the access rules name no issuer of other tokens"},
		"TokenAsHeader": {"the header has a token without a scheme", accesstest.Token("viewer-all"), nf.Identity{}, "the scheme of its Authorization header is not supported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := cheap(rules)
			got, err := a.Authenticate(request(t, tc.offer))
			if diff := cmp.Diff(tc.want, got); diff != "" || (tc.text == "") != (err == nil) {
				t.Fatalf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
			if err == nil {
				return
			}
			if want := "cannot authenticate the request: " + tc.text; nf.KindOf(err) != nf.Unauthenticated || err.Error() != want {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
		})
	}
	two := request(t, basic("ann", "correct horse"))
	two.Header.Add("Authorization", bearer("viewer-all"))
	if _, err := access.NewAuthenticator(rules).Authenticate(two); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("of two proofs, which one counts? %v", err)
	}
	if got := access.NewAuthenticator(rules).Challenges(); len(got) != 2 {
		t.Errorf("the challenges are %q", got)
	}
}

// TestOpenStackToken checks the header that OpenStack's clients send.
func TestOpenStackToken(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, newClock(), "users: [{name: ann, password_hash: '"+horse+"'}]\ntokens: [{name: so, sha256: "+tokenSum("viewer-all")+"}]\n", nil)
	token := accesstest.Token("viewer-all")
	const none, wrong = "it has no credentials; send a token, a user and password, or a client certificate", "the service token is unknown or has expired"
	cases := map[string]struct {
		reason, authorization string
		tokens                []string
		want                  string // the identity, or the text of the error
	}{
		"Token":    {"the token is one of the rules", "", []string{token}, "token:so"},
		"Unknown":  {"it is not", "", []string{"k8spt_unknown"}, wrong},
		"Keystone": {"it is one of Keystone", "", []string{"gAAAAAB"}, "its token is not a service token, and the access rules name no issuer of other tokens"},
		"Unused":   {"a client without a token sends this", "", []string{"notused"}, none},
		"Empty":    {"an older client sends this", "", []string{""}, none},
		"Two":      {"of two tokens, which one counts", "", []string{token, token}, "it has several Authorization or X-Auth-Token headers"},
		"Basic":    {"a password precedes the token", basic("ann", "correct horse"), []string{"k8spt_unknown"}, "user:ann"},
		"Wrong":    {"also a wrong one", "Bearer k8spt_unknown", []string{token}, wrong},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, tc.authorization)
			for _, token := range tc.tokens {
				r.Header.Add("X-Auth-Token", token)
			}
			a, _ := cheap(rules)
			id, err := a.Authenticate(r)
			got := id.String()
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "cannot authenticate the request: ")
			}
			if got != tc.want || err != nil && nf.KindOf(err) != nf.Unauthenticated {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func tokenSum(who string) string {
	yaml := accesstest.YAML()
	_, after, _ := strings.Cut(yaml, "{name: "+who+", sha256: ")
	return after[:64]
}

// TestFailuresAreCounted checks that failed attempts limit further ones from the
// same address.
func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	c := newClock()
	a, _ := cheap(rulesOf(t, c, "users: [{name: ann, password_hash: '"+horse+"'}]\ntokens: [{name: so, sha256: "+tokenSum("stranger")+"}]\n", nil))
	from := func(addr, offer string) error {
		r := request(t, offer)
		r.RemoteAddr = addr
		_, err := a.Authenticate(r)
		return err
	}
	if err := from("192.0.2.1:1", basic("ann", "correct horse")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := from("192.0.2.1:1", "Bearer k8spt_guess"); nf.KindOf(err) != nf.Unauthenticated {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	cases := []struct {
		reason, addr, offer string
		kind                nf.Kind // Internal: the identity is authenticated
	}{
		{"the next attempt with a token is rejected", "192.0.2.1:2", "Bearer k8spt_guess", nf.TooManyRequests},
		{"an attempt with a password is rejected without a comparison", "192.0.2.1:3", basic("ann", "wrong"), nf.TooManyRequests},
		{"a password that was verified a moment ago still works", "192.0.2.1:4", basic("ann", "correct horse"), nf.Internal},
		{"a valid token still works", "192.0.2.1:5", "Bearer " + accesstest.Token("stranger"), nf.Internal},
		{"an IPv4 address and its IPv6 form are one address", "[::ffff:192.0.2.1]:5", "Bearer k8spt_guess", nf.TooManyRequests},
		{"other addresses are not limited", "192.0.2.2:1", "Bearer k8spt_guess", nf.Unauthenticated},
		{"a request without credentials does not count as an attempt", "192.0.2.1:6", "", nf.Unauthenticated},
	}
	for _, tc := range cases {
		err := from(tc.addr, tc.offer)
		if (tc.kind == nf.Internal) != (err == nil) || err != nil && nf.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if tc.kind == nf.TooManyRequests && (nf.RetryAfterOf(err) <= 0 || nf.RetryAfterOf(err) > 6*time.Second) {
			t.Errorf("%s: to be tried again after %s", tc.reason, nf.RetryAfterOf(err))
		}
	}
	c.pass(nf.RetryAfterOf(from("192.0.2.1:1", "Bearer k8spt_guess")))
	if err := from("192.0.2.1:1", "Bearer k8spt_guess"); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("after the time that was said: %v", err)
	}
	for i := range 10 {
		if err := from(fmt.Sprintf("[2001:db8::%x]:1", i+1), "Bearer k8spt_guess"); nf.KindOf(err) != nf.Unauthenticated {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	if err := from("[2001:db8::ffff]:1", "Bearer k8spt_guess"); nf.KindOf(err) != nf.TooManyRequests {
		t.Errorf("a network of IPv6 is one client: %v", err)
	}
}

// TestAttemptsAtOnce checks that concurrent attempts count like sequential ones.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	begin, addresses := access.NewThrottle(c.Now)
	var ends []func(bool)
	for i := range 10 {
		end, _ := begin("a")
		if end == nil {
			t.Fatalf("attempt %d is refused", i)
		}
		ends = append(ends, end)
	}
	if end, after := begin("a"); end != nil || after < time.Second {
		t.Errorf("an eleventh attempt starts while the results of the ten are unknown, or after %s", after)
	}
	ends[0](false)
	end, _ := begin("a")
	if end == nil {
		t.Fatal("one that did not fail still counts")
	}
	end(true)
	if end, _ := begin("a"); end != nil {
		t.Error("one that failed does not count")
	}
	if end, _ := begin("b"); end == nil {
		t.Error("another address is refused")
	}
	for i := range 20_000 { // the memory for addresses is limited
		begin(fmt.Sprint(i))
	}
	if n := addresses(); n > 10_000 {
		t.Errorf("%d addresses are kept in mind", n)
	}
}

// TestPasswordsAreRemembered counts the comparisons of repeated passwords.
func TestPasswordsAreRemembered(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := folder(t, map[string]string{"access.yaml": "users: [{name: ann, password_hash: '" + horse + "'}]\n"})
	rules, err := access.New(access.Config{File: dir + "/access.yaml", Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	a, comparisons := cheap(rules)
	var together sync.WaitGroup
	for range 50 { // many connections of one client
		together.Go(func() {
			if _, err := a.Authenticate(request(t, basic("ann", "correct horse"))); err != nil && nf.KindOf(err) != nf.TooManyRequests {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if n := comparisons(); n != 1 {
		t.Errorf("50 requests at once cost %d comparisons", n)
	}
	again := func(reason, password string, want bool, cost int64) {
		t.Helper()
		before := comparisons()
		if _, err := a.Authenticate(request(t, basic("ann", password))); (err == nil) != want || comparisons()-before != cost {
			t.Errorf("%s: %v, %d comparisons", reason, err, comparisons()-before)
		}
	}
	again("a verified password is cached", "correct horse", true, 0)
	again("a wrong password is compared", "wrong", false, 1)
	again("a wrong password is not cached", "wrong", false, 1)
	c.pass(time.Minute)
	again("a cached password expires after a minute", "correct horse", true, 1)
	write(t, dir+"/access.yaml", "users: [{name: ann, password_hash: '"+staple+"'}]\n")
	c.pass(time.Second)
	again("a changed password is not in the cache", "correct horse", false, 1)
	again("the new password is compared", "battery staple", true, 1)
}

// TestUnknownUsersCost checks that a request of an unknown user costs as many
// comparisons as that of a known one.
func TestUnknownUsersCost(t *testing.T) {
	t.Parallel()
	a, comparisons := cheap(rulesOf(t, newClock(), "users: [{name: ann, password_hash: '"+horse+"'}]\n", nil))
	for _, password := range []string{"x", "correct horse", "correct horse"} { // even if it is another user's, and cached
		before := comparisons()
		_, err := a.Authenticate(request(t, basic("zoe", password)))
		if nf.KindOf(err) != nf.Unauthenticated || comparisons()-before != 1 {
			t.Errorf("%q: %v, %d comparisons", password, err, comparisons()-before)
		}
	}
	if _, err := a.Authenticate(request(t, basic("ann", "correct horse"))); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(request(t, basic("zoe", horse+"correct horse"))); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("the cached password of ann authenticates zoe: %v", err)
	}
	none := access.NewAuthenticator(rulesOf(t, newClock(), "users: []\n", nil))
	if _, err := none.Authenticate(request(t, basic("zoe", "x"))); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("there are no users: %v", err)
	}
}

func TestNoSecretInErrors(t *testing.T) {
	t.Parallel()
	a, _ := cheap(rulesOf(t, newClock(), "users: [{name: ann, password_hash: '"+horse+"'}]\noidc: {issuer: 'http://127.0.0.1:1', audience: x}\n", nil))
	for _, offer := range []string{basic("ann", "s3cret"), "Bearer k8spt_s3cret", "Bearer s3cret.s3cret.s3cret", "s3cret", "s3cret s3cret"} {
		_, err := a.Authenticate(request(t, offer))
		if err == nil || strings.Contains(err.Error(), "s3cret") || errors.Unwrap(err) == nil {
			t.Errorf("%q: %v", offer, err)
		}
	}
}
