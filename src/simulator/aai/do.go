package aai

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// Do sends a request of another client, such as SO, without a network, and returns the
// response. The path is below /aai/v30. Faults apply to the request as to all others.
func (s *Simulator) Do(ctx context.Context, appID, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "/aai/v30"+path, strings.NewReader(body))
	user := slices.Sorted(maps.Keys(s.cfg.Users))[0]
	r.SetBasicAuth(user, s.cfg.Users[user])
	media := typeJSON
	if method == http.MethodPatch {
		media = typePatch
	}
	for name, value := range map[string]string{"X-FromAppId": appID, "X-TransactionId": "1", "Accept": typeJSON, "Content-Type": media} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}
