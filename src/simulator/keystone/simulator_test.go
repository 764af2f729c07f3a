package keystone_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/keystone"
)

const tokens = "/v3/auth/tokens"

// login returns a request for a token.
func login(user, password, project string) string {
	scope := ""
	if project != "" {
		scope = fmt.Sprintf(`, "scope": {"project": {"name": %q, "domain": {"id": "default"}}}`, project)
	}
	return fmt.Sprintf(`{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": %q, "domain": {"name": "Default"}, "password": %q}}}%s}}`, user, password, scope)
}

// send sends a request with headers: name, value, ….
func send(t *testing.T, s *keystone.Simulator, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestSimulator(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := keystone.New(keystone.Config{Endpoint: "http://127.0.0.1:9015", Clock: func() time.Time { return now }, Users: []keystone.User{
		{Name: "svc", Password: "p", Roles: map[string][]string{"service": {"admin"}}},
		{Name: "ann", Password: "q", Roles: map[string][]string{"blue": {"member"}}},
	}})
	for reason, tc := range map[string]struct {
		body   string
		status int
	}{
		"no request":         {"{}", http.StatusBadRequest},
		"a wrong password":   {login("ann", "wrong", "blue"), http.StatusUnauthorized},
		"an unknown user":    {login("eve", "q", "blue"), http.StatusUnauthorized},
		"no role in it":      {login("ann", "q", "service"), http.StatusUnauthorized},
		"no domain":          {`{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "ann", "password": "q"}}}}}`, http.StatusBadRequest},
		"another method":     {`{"auth": {"identity": {"methods": ["token"]}}}`, http.StatusBadRequest},
		"no project":         {login("ann", "q", ""), http.StatusCreated},
		"the right password": {login("ann", "q", "blue"), http.StatusCreated},
	} {
		if got := send(t, s, "POST", tokens, tc.body); got.Code != tc.status {
			t.Errorf("%s: status %d, want %d", reason, got.Code, tc.status)
		}
	}
	own := send(t, s, "POST", tokens, login("svc", "p", "service")).Header().Get("X-Subject-Token")
	ann := send(t, s, "POST", tokens, login("ann", "q", "blue")).Header().Get("X-Subject-Token")
	for reason, tc := range map[string]struct {
		auth, subject string
		status        int
	}{
		"of another":           {own, ann, http.StatusOK},
		"of its own":           {ann, ann, http.StatusOK},
		"without the role":     {ann, own, http.StatusForbidden},
		"an unknown one":       {own, "unknown", http.StatusNotFound},
		"by an unknown one":    {"unknown", ann, http.StatusUnauthorized},
		"without a token":      {"", ann, http.StatusUnauthorized},
		"of no token":          {own, "", http.StatusNotFound},
		"an unknown, likewise": {ann, "unknown", http.StatusForbidden},
	} {
		got := send(t, s, "GET", tokens, "", "X-Auth-Token", tc.auth, "X-Subject-Token", tc.subject)
		if got.Code != tc.status {
			t.Errorf("a validation %s: status %d, want %d", reason, got.Code, tc.status)
		}
	}
	var document struct {
		Token struct {
			Catalog []any     `json:"catalog"`
			Expires time.Time `json:"expires_at"`
		} `json:"token"`
	}
	got := send(t, s, "GET", tokens, "", "X-Auth-Token", own, "X-Subject-Token", ann)
	if err := json.NewDecoder(got.Body).Decode(&document); err != nil || len(document.Token.Catalog) != 1 || !document.Token.Expires.After(now) {
		t.Errorf("the token is %+v, %v", document, err)
	}
	if got := send(t, s, "DELETE", tokens, "", "X-Auth-Token", own, "X-Subject-Token", ann); got.Code != http.StatusNoContent {
		t.Errorf("the revocation: status %d", got.Code)
	}
	if got := send(t, s, "GET", tokens, "", "X-Auth-Token", own, "X-Subject-Token", ann); got.Code != http.StatusNotFound {
		t.Errorf("a revoked token: status %d", got.Code)
	}
	now = now.Add(time.Hour)
	if got := send(t, s, "GET", tokens, "", "X-Auth-Token", own, "X-Subject-Token", own); got.Code != http.StatusUnauthorized {
		t.Errorf("an expired token: status %d", got.Code)
	}
	s.Fail(keystone.Fault{Status: http.StatusServiceUnavailable}, 1)
	if got := send(t, s, "GET", "/v3", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a fault: status %d", got.Code)
	}
	if got := send(t, s, "GET", "/v3", ""); got.Code != http.StatusOK {
		t.Errorf("after the fault: status %d", got.Code)
	}
	for _, e := range s.Journal() {
		if e.Method == "" || e.Status == 0 {
			t.Errorf("the journal has %+v", e)
		}
	}
}
