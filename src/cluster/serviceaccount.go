package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	defaultTokenLife = 3600     // seconds, of a service account's token
	maxTokenAnswer   = 64 << 10 // bytes of an answer that has a token
)

// errNotToken is the error of an answer that has no token. It does not quote the
// answer, which may come from any server.
var errNotToken = errors.New("the answer to a TokenRequest has no token with an expiry")

// accountTokens returns the source of the tokens of a service account. It begins
// with the token that was stored last, if the access has one. It renews the
// access's own token at once, so that a missing permission is known before the
// token expires. Without Keep in the pool's configuration, it renews nothing.
func (bt *breakerTransport) accountTokens(access nf.Access) *tokens {
	ts := newTokens(bt.cfg.Clock, bt.tokenLog())
	ts.given = bearer{token: string(access.Token), expires: nf.TokenExpiry(string(access.Token))}
	ts.current, ts.delay = ts.given, rand.Float64()
	ts.offer(renewed(access.Renewed))
	if bt.cfg.Keep == nil {
		return ts
	}
	ts.fetch = func(ctx context.Context, current string) (bearer, error) {
		return bt.requestToken(ctx, access, current)
	}
	ts.keep = func(ctx context.Context, b bearer) error {
		return bt.cfg.Keep(ctx, bt.region, access, nf.RenewedToken{Token: nf.Secret(b.token), Issued: b.fetched.UTC(), Expires: b.expires.UTC()})
	}
	return ts
}

func (bt *breakerTransport) tokenLog() *slog.Logger { return bt.cfg.Logger.With("region", bt.region) }

// offer uses the credential of an equal access, which another replica may have renewed.
func (bt *breakerTransport) offer(access nf.Access) {
	if bt.tokens != nil {
		bt.tokens.offer(renewed(access.Renewed))
	}
	if bt.certificates != nil {
		bt.certificates.offer(access.CertificateRenewal)
	}
}

func renewed(t *nf.RenewedToken) bearer {
	if t == nil {
		return bearer{}
	}
	return bearer{token: string(t.Token), fetched: t.Issued, expires: t.Expires}
}

// requestToken requests a token for the access's service account, and checks
// that the API server accepts it.
func (bt *breakerTransport) requestToken(ctx context.Context, access nf.Access, current string) (bearer, error) {
	account, server := *access.Account(), strings.TrimSuffix(access.Server, "/")
	life := account.Lifetime
	if life == 0 {
		life = defaultTokenLife
	}
	var granted authentication.TokenRequest
	path := "/api/v1/namespaces/" + account.Namespace + "/serviceaccounts/" + account.Name + "/token"
	code, err := bt.post(ctx, server+path, current, &authentication.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authentication.TokenRequestSpec{Audiences: account.Audiences, ExpirationSeconds: &life},
	}, &granted)
	if err != nil {
		return bearer{}, err
	}
	if code >= http.StatusMultipleChoices {
		return bearer{}, tokenRefusal(account, code)
	}
	// Not the token's own claim: an API server may issue a token that lives longer
	// than it promises.
	expires := granted.Status.ExpirationTimestamp.Time
	if granted.Status.Token == "" || expires.IsZero() {
		return bearer{}, &tokenError{nf.ReasonNotKubernetes, errNotToken}
	}
	return bearer{token: granted.Status.Token, expires: expires}, bt.verify(ctx, server, granted.Status.Token)
}

// verify returns an error if the API server does not accept a new token, so that
// it does not replace one that works.
func (bt *breakerTransport) verify(ctx context.Context, server, token string) error {
	code, err := bt.post(ctx, server+"/apis/authentication.k8s.io/v1/selfsubjectreviews", token, &authentication.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	}, nil)
	if code == http.StatusUnauthorized {
		err = &tokenError{nf.ReasonUnauthorized, errors.New(
			"the API server does not accept the token that it issued; the access's audiences must include one of the API server's")}
	}
	return err
}

// tokenRefusal returns the error of a TokenRequest that the API server rejects.
// It does not quote the API server's text.
func tokenRefusal(account nf.ServiceAccount, code int) error {
	why, reason := "the API server answers "+statusText(code)+" to the TokenRequest for "+account.String(), nf.ReasonUnavailable
	switch code {
	case http.StatusUnauthorized:
		why, reason = "the API server does not accept the current token (401)", nf.ReasonUnauthorized
	case http.StatusForbidden:
		why, reason = fmt.Sprintf("the current token may not create tokens of service account %s; a Role in namespace %s must allow it: "+
			`apiGroups [""], resources ["serviceaccounts/token"], resourceNames [%q], verbs ["create"]`,
			account, account.Namespace, account.Name), nf.ReasonForbidden
	case http.StatusNotFound:
		why = "the region has no service account " + account.String()
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		why = "the API server rejects the lifetime or the audiences of the access's service account (" + strconv.Itoa(code) + ")"
	}
	return &tokenError{reason, errors.New(why)}
}

// post sends an object to the API server, below the breaker: the request that
// needs the token has passed it. It decodes a successful answer into out, which
// may be nil, and returns the status code.
func (bt *breakerTransport) post(ctx context.Context, url, token string, in, out any) (code int, err error) {
	began := bt.cfg.Clock()
	call := Call{Region: bt.region, Verb: http.MethodPost}
	defer func() {
		if call.Took = bt.cfg.Clock().Sub(began); err == nil {
			call.Code = strconv.Itoa(code)
		}
		bt.cfg.Observe(call)
	}()
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := bt.next.RoundTrip(req)
	if err != nil {
		call.Reason = unreachable(err)
		return 0, &tokenError{call.Reason, unquoted(ctx, err, false)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		call.Reason = unreachable(err)
		return 0, &tokenError{call.Reason, unquoted(ctx, err, true)}
	}
	if out != nil && resp.StatusCode < http.StatusMultipleChoices && json.Unmarshal(answer, out) != nil {
		return 0, &tokenError{nf.ReasonNotKubernetes, errNotToken}
	}
	return resp.StatusCode, nil
}
