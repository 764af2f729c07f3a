package access

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// keys holds the public keys of an issuer.
type keys struct {
	public     []crypto.PublicKey
	algorithms []string
	at         time.Time // time of the request for them
}

// fetchKeys requests an issuer's configuration and keys.
func fetchKeys(ctx context.Context, client *http.Client, url string, now func() time.Time) (*keys, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), url)
	if err != nil {
		return nil, fmt.Errorf("cannot read its configuration: %w", err)
	}
	var told struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&told); err != nil {
		return nil, fmt.Errorf("cannot read its configuration: %w", err)
	}
	if !trustworthy(told.Keys) {
		return nil, errors.New("its jwks_uri is not an https URL")
	}
	public, err := fetchKeySet(ctx, client, told.Keys)
	if err != nil {
		return nil, err
	}
	return &keys{public: public, algorithms: asymmetric(told.Algorithms), at: now()}, nil
}

func fetchKeySet(ctx context.Context, client *http.Client, url string) ([]crypto.PublicKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot get its keys: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot get its keys: %w", err)
	}
	defer answer.Body.Close()
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, errors.New("its keys are not a JSON Web Key Set")
	}
	var public []crypto.PublicKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// Ignore keys of unknown kinds and keys that are not for signing.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() && key.Use != "enc" {
			public = append(public, key.Key)
		}
	}
	if len(public) == 0 {
		return nil, errors.New("it has no usable key")
	}
	return public, nil
}

// asymmetric returns the issuer's algorithms that need a private key to sign,
// or RS256 if it names none.
func asymmetric(told []string) []string {
	good := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
	var out []string
	for _, name := range told {
		if slices.Contains(good, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{oidc.RS256}
	}
	return out
}

// verify checks a token's signature, issuer, audience and times.
func (k *keys) verify(ctx context.Context, token string, cfg oidcConfig, now func() time.Time) (*oidc.IDToken, error) {
	set := &oidc.StaticKeySet{PublicKeys: k.public}
	return oidc.NewVerifier(cfg.issuer, set, &oidc.Config{ClientID: cfg.audience, SupportedSigningAlgs: k.algorithms, Now: now}).Verify(ctx, token)
}

// expired reports whether a token is valid but expired, so that other keys
// would not help.
func (*keys) expired(err error) bool {
	_, old := errors.AsType[*oidc.TokenExpiredError](err)
	return old
}

// strictTransport is a transport that rejects every status except 200. It therefore
// follows no redirects, and puts no text of a response into an error.
type strictTransport struct{ http.RoundTripper }

// RoundTrip sends the request, and limits the size of the response's body.
func (p strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // not read
		return nil, fmt.Errorf("it responded %s", answer.Status)
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}
