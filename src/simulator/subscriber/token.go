package subscriber

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// authorized reports whether a request to the callback has the credentials.
func (s *Simulator) authorized(r *http.Request) bool {
	switch {
	case s.cfg.User == "":
		return r.Header.Get("Authorization") == ""
	case s.cfg.Tokens:
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		defer s.mu.Unlock()
		return ok && s.tokens[token]
	}
	user, password, _ := r.BasicAuth()
	return user == s.cfg.User && password == s.cfg.Password
}

// token answers a request for a token (RFC 6749, section 4.4). It knows no client that
// names itself in the body alone.
func (s *Simulator) token(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || err != nil {
		s.reject(w, http.StatusBadRequest, "it is not a request for a token: %s", body)
		return
	}
	if form.Get("grant_type") != "client_credentials" {
		s.reject(w, http.StatusBadRequest, "grant_type is %q", form.Get("grant_type"))
		return
	}
	if user, password, _ := r.BasicAuth(); user != s.cfg.User || password != s.cfg.Password {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"error":"invalid_client"}`)
		return
	}
	s.mu.Lock()
	s.issued++
	token := fmt.Sprintf("token-%d", s.issued)
	s.tokens[token] = true
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
}
