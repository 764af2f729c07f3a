package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"golang.org/x/oauth2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// errNoIDToken is the error of a token endpoint whose answer has no ID token,
// which is what API servers accept.
var errNoIDToken = errors.New("the token endpoint's answer has no id_token")

// passwordGrant returns a function that fetches an ID token with OIDC's password
// grant. The addresses of the token endpoint are restricted as those of regions,
// and its redirects are not followed.
func (bt *breakerTransport) passwordGrant(o nf.OIDC) func(context.Context, string) (bearer, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		secure.RootCAs = x509.NewCertPool()
		secure.RootCAs.AppendCertsFromPEM(o.CA) // Validate has checked it
	}
	connection := &http.Client{
		Transport: &http.Transport{
			DialContext: bt.dial, Proxy: bt.operatorsProxy, TLSClientConfig: secure, TLSHandshakeTimeout: dialTimeout,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: stay,
	}
	grant := oauth2.Config{
		ClientID: o.ClientID, ClientSecret: string(o.ClientSecret), Scopes: []string{"openid"},
		// Not detected: a second try would count as a second wrong password.
		Endpoint: oauth2.Endpoint{TokenURL: o.TokenURL, AuthStyle: oauth2.AuthStyleInParams},
	}
	return func(ctx context.Context, _ string) (bearer, error) {
		got, err := grant.PasswordCredentialsToken(context.WithValue(ctx, oauth2.HTTPClient, connection), o.Username, string(o.Password))
		if err != nil {
			return bearer{}, grantError(ctx, err)
		}
		token, _ := got.Extra("id_token").(string)
		if token == "" {
			return bearer{}, &tokenError{nf.ReasonUnauthorized, errNoIDToken}
		}
		return bearer{token: token, expires: nf.TokenExpiry(token)}, nil
	}
}

// grantError translates the error of a token endpoint. It does not quote the
// endpoint's text: the endpoint may be any server.
func grantError(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return refusedToken("the token endpoint", refused.Response.StatusCode)
	}
	reason := unreachable(err)
	if err = unquoted(ctx, err, true); errors.Is(err, errGarbage) {
		err = errors.New("the token endpoint's answer is not that of an OIDC provider")
	}
	return &tokenError{reason, err}
}
