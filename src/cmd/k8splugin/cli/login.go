package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// loginOIDC says where a context's tokens come from.
type loginOIDC struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes,omitempty"` // in addition to openid and offline_access
}

// login holds the tokens of one context. They are in a file that only the user may
// read.
type login struct {
	loginOIDC

	context string
	path    string
}

// tokens is the content of the file.
type tokens struct {
	Issuer  string    `json:"issuer"`
	ID      string    `json:"id_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires_at,omitzero"`
}

// leeway is how long before its end a token is renewed.
const leeway = 30 * time.Second

// loginTime limits requests to the provider.
const loginTime = 30 * time.Second

// token returns a token that is valid, and renews it if it is not.
func (l *login) token(ctx context.Context, now func() time.Time) (string, error) {
	t, err := l.read()
	if err != nil {
		return "", err
	}
	if t.Expires.IsZero() || now().Add(leeway).Before(t.Expires) {
		return t.ID, nil
	}
	if t.Refresh == "" {
		return "", l.again(errors.New("the token has expired"))
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	provider, err := l.provider(ctx)
	if err != nil {
		return "", err
	}
	got, err := provider.TokenSource(ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return "", l.again(refused)
	}
	if err != nil {
		return "", &exitError{exitNoServer, fmt.Errorf("cannot renew the token at %s: %w", l.Issuer, err)}
	}
	return l.keep(got)
}

// again is the error of a login that must be repeated.
func (l *login) again(why error) error {
	return &exitError{exitNotAllowed, fmt.Errorf("cannot authenticate with context %q: %w; log in: k8splugin login --context %s", l.context, why, l.context)}
}

func (l *login) read() (t tokens, err error) {
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, l.again(errors.New("no token is stored"))
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return t, l.again(fmt.Errorf("cannot read %s: %w", l.path, err))
	}
	if t.Issuer != l.Issuer {
		return t, l.again(fmt.Errorf("the stored token is from %s", t.Issuer))
	}
	return t, nil
}

// keep stores the tokens of a response, and returns the id token.
func (l *login) keep(got *oauth2.Token) (string, error) {
	id, _ := got.Extra("id_token").(string)
	if id == "" {
		return "", &exitError{exitNotAllowed, fmt.Errorf("the response of %s contains no id_token", l.Issuer)}
	}
	text, err := json.Marshal(tokens{Issuer: l.Issuer, ID: id, Refresh: got.RefreshToken, Expires: expiry(id, got.Expiry)})
	if err == nil {
		err = writePrivate(l.path, text)
	}
	if err != nil {
		return "", fmt.Errorf("cannot store the token: %w", err)
	}
	return id, nil
}

// expiry returns the end of an id token. That of the access token, which the provider
// also tells, may be later.
func expiry(id string, ofAccess time.Time) time.Time {
	if end := nf.TokenExpiry(id); !end.IsZero() {
		return end
	}
	return ofAccess
}

// provider reads the endpoints of the provider.
func (l *login) provider(ctx context.Context) (*oauth2.Config, error) {
	p, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return nil, &exitError{exitNoServer, fmt.Errorf("cannot read the configuration of %s: %w", l.Issuer, err)}
	}
	return &oauth2.Config{
		ClientID: l.ClientID, Endpoint: p.Endpoint(), Scopes: append([]string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}, l.Scopes...),
	}, nil
}

func loginCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in at the provider of a context",
		Long: `Log in at the OpenID Connect provider of a context, by default the current one. The
command prints a URL and a code for a browser on any device, and waits. The token
is stored in a file that only you may read, and is renewed as long as the provider
allows it.`,
		Args: noArgs,
	}
	s.connection.define(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := s.connection.endpoint()
		if err != nil {
			return err
		}
		if e.login == nil {
			return usagef("the context has no provider to log in at; set one: k8splugin context set NAME --server URL --oidc-issuer URL --oidc-client-id ID")
		}
		return s.login(cmd.Context(), e.login)
	}
	return cmd
}

// login gets tokens by the device flow (RFC 8628).
func (s *session) login(ctx context.Context, l *login) error {
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: loginTime})
	provider, err := l.provider(ctx)
	if err != nil {
		return err
	}
	if provider.Endpoint.DeviceAuthURL == "" {
		return &exitError{exitNotAllowed, fmt.Errorf("cannot log in: %s does not offer the device flow", l.Issuer)}
	}
	device, err := provider.DeviceAuth(ctx)
	if err != nil {
		return &exitError{exitNotAllowed, fmt.Errorf("cannot log in at %s: %w", l.Issuer, err)}
	}
	fmt.Fprintf(s.out.stderr, "Open %s and enter the code %s\n", printable(device.VerificationURI), printable(device.UserCode))
	got, err := provider.DeviceAccessToken(ctx, device)
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, errors.New("interrupted")}
	case err != nil:
		return &exitError{exitNotAllowed, fmt.Errorf("cannot log in at %s: %w", l.Issuer, err)}
	}
	if _, err := l.keep(got); err != nil {
		return err
	}
	fmt.Fprintf(s.out.stderr, "logged in to context %s\n", printable(l.context))
	return nil
}
