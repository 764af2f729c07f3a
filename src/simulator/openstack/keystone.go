package openstack

import (
	"net/http"
	"time"
)

// authRequest is the body of a password authentication.
type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password struct {
				User struct {
					Name     string `json:"name"`
					Password string `json:"password"`
					Domain   domain `json:"domain"`
				} `json:"user"`
			} `json:"password"`
		} `json:"identity"`
		Scope struct {
			Project struct {
				Name   string `json:"name"`
				Domain domain `json:"domain"`
			} `json:"project"`
		} `json:"scope"`
	} `json:"auth"`
}

type domain struct {
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// is reports whether a request means the domain with the name. The id of the domain
// Default is "default".
func (d domain) is(name string) bool {
	return d.Name == name && d.ID == "" || d.Name == "" && d.ID == "default" && name == "Default"
}

// identity adds the calls of Keystone.
func (s *Simulator) identity() {
	s.on("GET /identity/", true, nil, func(r request) response {
		return response{status: http.StatusMultipleChoices, body: map[string]any{"versions": map[string]any{"values": []any{map[string]any{
			"id": "v3.14", "status": "stable", "links": []any{map[string]any{"rel": "self", "href": base(r) + "/identity/v3/"}},
		}}}}}
	})
	s.on("POST /identity/v3/auth/tokens", true, nil, s.authenticate)
}

// authenticate issues a token for the project, with the catalog.
func (s *Simulator) authenticate(r request) response {
	var a authRequest
	if err := decode(r, &a); err != nil {
		return unidentified(http.StatusBadRequest, err.Error())
	}
	user, project := a.Auth.Identity.Password.User, a.Auth.Scope.Project
	if len(a.Auth.Identity.Methods) != 1 || a.Auth.Identity.Methods[0] != "password" {
		return unidentified(http.StatusBadRequest, "the only method is password")
	}
	if user.Name != s.cfg.Username || user.Password != s.cfg.Password || !user.Domain.is(s.cfg.UserDomain) ||
		project.Name != s.cfg.Project || !project.Domain.is(s.cfg.ProjectDomain) {
		return unidentified(http.StatusUnauthorized, "The request you have made requires authentication.")
	}
	token, expires := "token-"+s.id(), s.cfg.Clock().Add(s.cfg.Life)
	s.tokens[token] = expires
	service := func(kind, path string) map[string]any {
		endpoint := func(of, host, region string) map[string]any {
			return map[string]any{"id": kind + "-" + of, "interface": of, "region": region, "region_id": region, "url": host + path}
		}
		return map[string]any{"id": kind, "type": kind, "name": kind, "endpoints": []any{
			endpoint("internal", "http://internal.invalid", regionOne), endpoint("public", base(r), regionOne), endpoint("public", base(r)+secondRegion, regionTwo),
		}}
	}
	return response{status: http.StatusCreated, header: map[string]string{"X-Subject-Token": token}, body: map[string]any{"token": map[string]any{
		"methods": []string{"password"}, "expires_at": expires.UTC().Format("2006-01-02T15:04:05.000000Z"), "issued_at": s.cfg.Clock().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"catalog": []any{service("compute", "/compute/v2.1"), service("network", "/network"), service("image", "/image"), service("orchestration", "/orchestration/v1/project")},
	}}}
}

// The regions of the catalog. The services of the second one have their own paths.
const (
	regionOne    = "RegionOne"
	regionTwo    = "RegionTwo"
	secondRegion = "/region-two"
)

// unidentified returns an error in Keystone's form.
func unidentified(status int, message string) response {
	return response{status: status, body: map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}}}
}

// Expire ends all tokens.
func (s *Simulator) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = map[string]time.Time{}
}
