package keystone

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	defaultDomain = "Default"
	maxBody       = 112 << 10 // as Keystone's
	timeForm      = "2006-01-02T15:04:05.000000Z"
)

// routes returns the handler of the API.
func (s *Simulator) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v3", s.version)
	mux.HandleFunc("GET /v3/{$}", s.version)
	mux.HandleFunc("POST /v3/auth/tokens", s.create)
	mux.HandleFunc("GET /v3/auth/tokens", s.validate)
	mux.HandleFunc("HEAD /v3/auth/tokens", s.validate)
	mux.HandleFunc("DELETE /v3/auth/tokens", s.revoke)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "The resource could not be found.")
	})
	return mux
}

// fail writes an error as Keystone does.
func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "title": http.StatusText(status), "message": message}})
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "X-Auth-Token")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // the client may have gone
}

func (*Simulator) version(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	answer(w, http.StatusOK, map[string]any{"version": map[string]any{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []any{map[string]any{"rel": "self", "href": scheme + "://" + r.Host + "/v3/"}},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}})
}

// named is a name with that of its domain.
type named struct {
	Name     string `json:"name"`
	Domain   *named `json:"domain"`
	ID       string `json:"id"`
	Password string `json:"password"` // of a user
}

// domain returns the name of the domain.
func (n named) domain() string {
	if n.Domain == nil {
		return ""
	}
	if n.Domain.ID == "default" {
		return defaultDomain
	}
	return n.Domain.Name
}

// request is the document of a request for a token.
type request struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password *struct {
				User named `json:"user"`
			} `json:"password"`
		} `json:"identity"`
		Scope *struct {
			Project *named `json:"project"`
		} `json:"scope"`
	} `json:"auth"`
}

func (s *Simulator) create(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var in request
	if err != nil || r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(content, &in) != nil || len(in.Auth.Identity.Methods) != 1 {
		fail(w, http.StatusBadRequest, "Expecting to find auth in request body.")
		return
	}
	by := in.Auth.Identity.Password
	if in.Auth.Identity.Methods[0] != "password" || by == nil || by.User.Name == "" || by.User.domain() == "" {
		fail(w, http.StatusBadRequest, "Expecting to find domain in user.")
		return
	}
	user, found := s.user(by.User.Name, by.User.domain())
	if !found || user.Password != by.User.Password {
		fail(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	project := ""
	if in.Auth.Scope != nil {
		if in.Auth.Scope.Project == nil || in.Auth.Scope.Project.domain() == "" {
			fail(w, http.StatusBadRequest, "Expecting to find domain in project.")
			return
		}
		project = qualified(*in.Auth.Scope.Project)
		if len(user.Roles[project]) == 0 {
			fail(w, http.StatusUnauthorized, "The request you have made requires authentication.")
			return
		}
	}
	text := s.issue(user, project)
	w.Header().Set("X-Subject-Token", text)
	answer(w, http.StatusCreated, s.document(s.find(text), !r.URL.Query().Has("nocatalog")))
}

func (s *Simulator) user(name, domain string) (User, bool) {
	for _, u := range s.cfg.Users {
		if u.Name == name && domainOf(u) == domain {
			return u, true
		}
	}
	return User{}, false
}

func domainOf(u User) string {
	if u.Domain == "" {
		return defaultDomain
	}
	return u.Domain
}

// qualified returns a project as User.Roles names it.
func qualified(project named) string {
	if project.domain() == defaultDomain {
		return project.Name
	}
	return project.Name + "@" + project.domain()
}

// validate serves the validation of a token by another one, or by itself.
func (s *Simulator) validate(w http.ResponseWriter, r *http.Request) {
	subject, found := s.subject(w, r)
	if !found {
		return
	}
	w.Header().Set("X-Subject-Token", r.Header.Get("X-Subject-Token"))
	answer(w, http.StatusOK, s.document(subject, !r.URL.Query().Has("nocatalog")))
}

func (s *Simulator) revoke(w http.ResponseWriter, r *http.Request) {
	if _, found := s.subject(w, r); found {
		s.Revoke(r.Header.Get("X-Subject-Token"))
		w.WriteHeader(http.StatusNoContent)
	}
}

// subject returns the token that a request is about, or writes why it may not.
func (s *Simulator) subject(w http.ResponseWriter, r *http.Request) (*token, bool) {
	own := s.find(r.Header.Get("X-Auth-Token"))
	if own == nil {
		w.Header().Set("WWW-Authenticate", `Keystone uri="http://`+r.Host+`/v3"`)
		fail(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return nil, false
	}
	text := r.Header.Get("X-Subject-Token")
	if text == "" {
		fail(w, http.StatusNotFound, "Could not find token.")
		return nil, false
	}
	if text != r.Header.Get("X-Auth-Token") && !s.mayValidate(own) {
		fail(w, http.StatusForbidden, "You are not authorized to perform the requested action: identity:validate_token.")
		return nil, false
	}
	subject := s.find(text)
	if subject == nil {
		fail(w, http.StatusNotFound, "Could not find token.")
		return nil, false
	}
	return subject, true
}

// idOf returns an id that is made of a name.
func idOf(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return hex.EncodeToString(sum[:16])
}

// ProjectID returns the id of a project, as User.Roles names it.
func ProjectID(project string) string { return idOf("project", project) }

// UserID returns the id of a user.
func UserID(name, domain string) string { return idOf("user", name+"@"+domain) }

func domain(name string) map[string]any {
	if name == defaultDomain {
		return map[string]any{"id": "default", "name": name}
	}
	return map[string]any{"id": idOf("domain", name), "name": name}
}

// document returns a token as responses have it.
func (s *Simulator) document(t *token, catalog bool) map[string]any {
	out := map[string]any{
		"methods": []string{"password"}, "audit_ids": []string{idOf("audit", t.issued.String())[:22]},
		"issued_at": t.issued.UTC().Format(timeForm), "expires_at": t.expires.UTC().Format(timeForm),
		"user": map[string]any{"id": UserID(t.user.Name, domainOf(t.user)), "name": t.user.Name, "domain": domain(domainOf(t.user)), "password_expires_at": (*time.Time)(nil)},
	}
	if t.project == "" {
		return map[string]any{"token": out}
	}
	name, in, other := strings.Cut(t.project, "@")
	if !other {
		in = defaultDomain
	}
	out["project"], out["is_domain"] = map[string]any{"id": ProjectID(t.project), "name": name, "domain": domain(in)}, false
	roles := []any{}
	for _, role := range t.user.Roles[t.project] {
		roles = append(roles, map[string]any{"id": idOf("role", role), "name": role})
	}
	out["roles"] = roles
	if catalog {
		out["catalog"] = s.catalog()
	}
	return map[string]any{"token": out}
}

// catalog returns the services that clients find.
func (s *Simulator) catalog() []any {
	if s.cfg.Endpoint == "" {
		return []any{}
	}
	var endpoints []any
	for _, face := range []string{"public", "internal", "admin"} {
		endpoints = append(endpoints, map[string]any{
			"id": idOf("endpoint", face), "interface": face, "region": "RegionOne", "region_id": "RegionOne", "url": s.cfg.Endpoint,
		})
	}
	return []any{map[string]any{"id": idOf("service", "tacker"), "name": "tacker", "type": "nfv-orchestration", "endpoints": endpoints}}
}
