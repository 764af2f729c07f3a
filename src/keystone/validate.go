package keystone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	maxAnswer  = 1 << 20 // bytes of a response
	maxGroups  = 256     // roles of one identity
	maxName    = 256     // bytes of a name
	renewAhead = time.Minute

	// Kind is the kind of the identities.
	Kind = "keystone"
	// RolePrefix precedes the name of a role in a group.
	RolePrefix = "keystone:"
)

// ownToken is the token of the service user.
type ownToken struct {
	text    string
	expires time.Time
}

// reference is a user, a project, a domain or a role.
type reference struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Domain *reference `json:"domain"`
}

// tokenDocument is the response to a request for a token and to its validation.
type tokenDocument struct {
	Token struct {
		Expires time.Time   `json:"expires_at"`
		User    reference   `json:"user"`
		Project *reference  `json:"project"`
		Roles   []reference `json:"roles"`
	} `json:"token"`
}

// validate asks Keystone about a token.
func (c *Client) validate(ctx context.Context, token string) (proven, error) {
	own, err := c.ownToken(ctx, "")
	if err != nil {
		return proven{}, err
	}
	status, document, err := c.get(ctx, own, token)
	if err == nil && status == http.StatusUnauthorized {
		// The token of the service user was revoked, or Keystone has lost it.
		if own, err = c.ownToken(ctx, own); err != nil {
			return proven{}, err
		}
		status, document, err = c.get(ctx, own, token)
	}
	switch {
	case err != nil:
		return proven{}, err
	case status == http.StatusNotFound:
		return proven{}, wrongToken()
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return proven{}, fmt.Errorf("the service user may not validate tokens: status %d", status)
	case status != http.StatusOK:
		return proven{}, fmt.Errorf("the response to a validation has the status %d", status)
	}
	return c.proven(document)
}

// get sends the request that validates a token.
func (c *Client) get(ctx context.Context, own, token string) (status int, document tokenDocument, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/auth/tokens?nocatalog", http.NoBody)
	if err != nil {
		return 0, document, fmt.Errorf("cannot create a request: %w", err)
	}
	r.Header.Set("X-Auth-Token", own)
	r.Header.Set("X-Subject-Token", token)
	status, _, err = c.send(r, &document)
	return status, document, err
}

// send sends a request, and reads the document of a successful response.
func (c *Client) send(r *http.Request, into *tokenDocument) (status int, header http.Header, err error) {
	r.Header.Set("Accept", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot reach Keystone: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("cannot read the response of Keystone: %w", err)
	case len(content) > maxAnswer:
		return 0, nil, fmt.Errorf("the response of Keystone is longer than %d bytes", maxAnswer)
	case response.StatusCode/100 != 2:
		return response.StatusCode, response.Header, nil
	}
	if json.Unmarshal(content, into) != nil { // its error may quote the response
		return 0, nil, errors.New("the response of Keystone is not that of its API v3")
	}
	return response.StatusCode, response.Header, nil
}

// proven reads the identity of a valid token.
func (c *Client) proven(document tokenDocument) (proven, error) {
	now, t := c.cfg.Clock(), document.Token
	switch {
	case t.User.ID == "" || t.Expires.IsZero():
		return proven{}, errors.New("the response of Keystone names no user, or no time at which the token expires")
	case !now.Before(t.Expires):
		return proven{}, wrongToken()
	}
	id := nf.Identity{Kind: Kind, Name: c.nameOf(t.User, usableName)}
	if !usableName(id.Name) {
		return proven{}, wrongToken()
	}
	if t.Project != nil {
		id.Project = c.nameOf(*t.Project, usableProject)
		if !usableProject(id.Project) {
			return proven{}, wrongToken()
		}
		for _, role := range t.Roles {
			if name := RolePrefix + role.Name; role.Name != "" && usableName(name) {
				id.Groups = append(id.Groups, name)
			}
		}
	}
	slices.Sort(id.Groups)
	id.Groups = slices.Compact(id.Groups)
	id.Groups = slices.Clip(id.Groups[:min(len(id.Groups), maxGroups)])
	until := now.Add(remembered)
	if t.Expires.Before(until) {
		until = t.Expires
	}
	return proven{id, until}, nil
}

// nameOf returns the name of a user or a project of the domain whose names are used, and
// otherwise its id. A name that looks like an id could be that of another domain.
func (c *Client) nameOf(of reference, usable func(string) bool) string {
	if of.Domain != nil && of.Domain.Name == c.cfg.Names && usable(of.Name) && !isID(of.Name) {
		return of.Name
	}
	return of.ID
}

// isID reports whether a text looks like an id of Keystone: hexadecimal digits, or a UUID.
func isID(text string) bool {
	digits := strings.ReplaceAll(text, "-", "")
	return len(digits) >= 32 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

func usableProject(name string) bool { return nf.CheckID("project", name) == nil }

func usableName(name string) bool {
	return name != "" && len(name) <= maxName && nf.CheckText("name", name) == nil && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Token returns a token of the service user, which is valid for at least a minute.
func (c *Client) Token(ctx context.Context) (string, error) { return c.ownToken(ctx, "") }

// ownToken returns the token of the service user. It requests another one if there is
// none, if it expires soon, or if it is the rejected one.
func (c *Client) ownToken(ctx context.Context, rejected string) (string, error) {
	c.renewing <- struct{}{} // its holder waits for at most askWithin
	defer func() { <-c.renewing }()
	c.mu.Lock()
	own := c.own
	c.mu.Unlock()
	if own.text != "" && own.text != rejected && c.cfg.Clock().Add(renewAhead).Before(own.expires) {
		return own.text, nil
	}
	own, err := c.login(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = own
	return own.text, nil
}

// login requests a token of the service user.
func (c *Client) login(ctx context.Context) (ownToken, error) {
	user, password := c.cfg.Credentials(ctx)
	domain := map[string]any{"name": c.cfg.Domain}
	body, err := json.Marshal(map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": user, "domain": domain, "password": string(password)},
		}},
		"scope": map[string]any{"project": map[string]any{"name": c.cfg.Project, "domain": domain}},
	}})
	if err != nil {
		return ownToken{}, fmt.Errorf("cannot write the request for a token: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/auth/tokens?nocatalog", bytes.NewReader(body))
	if err != nil {
		return ownToken{}, fmt.Errorf("cannot create a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	var document tokenDocument
	status, header, err := c.send(r, &document)
	switch {
	case err != nil:
		return ownToken{}, err
	case status != http.StatusCreated:
		return ownToken{}, fmt.Errorf("the service user %q of project %q gets no token: status %d", user, c.cfg.Project, status)
	}
	text := header.Get("X-Subject-Token")
	if !wellFormed(text) || document.Token.Expires.IsZero() {
		return ownToken{}, errors.New("the response of Keystone contains no token")
	}
	return ownToken{text, document.Token.Expires}, nil
}
