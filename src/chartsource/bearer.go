package chartsource

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxToken is the maximum size of a token service's response in bytes.
const maxToken = 128 << 10

// login is the client of one registry for one fetch. It logs in when the
// registry requires it. It sends credentials to the origin of the registry and to
// the token service that the registry names, and tokens to the origin only. It is
// not safe for concurrent use.
//
// It replaces auth.Client because of a limit of oras-go 2.6: auth.Client rejects
// a token service that has another name than the registry and a private address,
// and has no option to allow it. Registries on private networks, such as GitLab
// and Harbor, can have such a service. Here, gate and dial check the token service
// like every other host.
type login struct {
	source   *Source
	registry *url.URL // its origin
	username string
	password nf.Secret // a token if there is no username

	authorization string // header of the last login; empty: none yet
}

var _ remote.Client = (*login)(nil)

// Do implements remote.Client, for requests without a body.
func (l *login) Do(r *http.Request) (*http.Response, error) {
	res, err := l.send(r)
	if err != nil || res.StatusCode != http.StatusUnauthorized || !sameOrigin(res.Request.URL, l.registry) {
		return res, err
	}
	authorization, err := l.answer(r.Context(), res.Header.Values("WWW-Authenticate"))
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	if authorization == "" || authorization == l.authorization {
		return res, nil // another attempt would fail, too
	}
	res.Body.Close()
	l.authorization = authorization
	return l.send(r)
}

func (l *login) send(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", userAgent)
	if l.authorization != "" && sameOrigin(r.URL, l.registry) {
		r.Header.Set("Authorization", l.authorization)
	}
	return l.source.send(r)
}

// answer returns the Authorization header for the challenges of the registry. It
// returns "" if there is none.
func (l *login) answer(ctx context.Context, challenges []string) (string, error) {
	for _, challenge := range challenges {
		scheme, rest, _ := strings.Cut(challenge, " ")
		switch bearer := strings.EqualFold(scheme, "Bearer"); {
		case bearer && l.username == "" && len(l.password) > 0:
			return "Bearer " + string(l.password), nil
		case bearer:
			token, err := l.token(ctx, parametersOf(rest))
			return "Bearer " + token, err
		case strings.EqualFold(scheme, "Basic") && l.username != "":
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(l.username+":"+string(l.password))), nil
		}
	}
	return "", nil
}

// token gets a token from the token service that a challenge names. Without
// credentials, it gets one for anonymous access.
func (l *login) token(ctx context.Context, challenge map[string]string) (string, error) {
	realm, err := url.Parse(challenge["realm"])
	if err != nil || realm.Host == "" {
		return "", errors.New("the registry requires a token but names no token service")
	}
	query := realm.Query()
	if challenge["service"] != "" {
		query.Set("service", challenge["service"])
	}
	scopes := append(auth.GetAllScopesForHost(ctx, l.registry.Host), strings.Fields(challenge["scope"])...)
	for _, scope := range auth.CleanScopes(scopes) {
		query.Add("scope", scope)
	}
	realm.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", fmt.Errorf("cannot create the request for a token: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	if l.username != "" {
		r.SetBasicAuth(l.username, string(l.password))
	}
	res, err := l.source.send(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", refusal(res.StatusCode)
	}
	var granted struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxToken)).Decode(&granted); err != nil {
		return "", fmt.Errorf("cannot read the response of the token service: %w", err)
	}
	token := cmp.Or(granted.AccessToken, granted.Token)
	if token == "" {
		return "", errors.New("the response of the token service has no token")
	}
	return token, nil
}

var challengeParameter = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]+)`)

// parametersOf returns the parameters of a challenge. If a parameter occurs more
// than once, the first one counts: the others belong to another challenge.
func parametersOf(challenge string) map[string]string {
	out := make(map[string]string)
	for _, match := range challengeParameter.FindAllStringSubmatch(challenge, -1) {
		name, value := strings.ToLower(match[1]), match[2]
		if quoted, err := strconv.Unquote(value); err == nil {
			value = quoted
		}
		if _, exists := out[name]; !exists {
			out[name] = value
		}
	}
	return out
}
