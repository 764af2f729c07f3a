package nfvo_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/nfvo"
)

// request is a GrantRequest with the given parts.
func request(parts string) string {
	return `{"vnfInstanceId": "v", "vnfLcmOpOccId": "o", "vnfdId": "d", "isAutomaticInvocation": false, ` + parts +
		`"_links": {"vnfInstance": {"href": "http://vnfm/v"}, "vnfLcmOpOcc": {"href": "http://vnfm/o"}}}`
}

const (
	instantiate = `"operation": "INSTANTIATE", "flavourId": "f", `
	added       = `{"id": "a", "type": "COMPUTE", "vduId": "u", "resourceTemplateId": "u"}`
	present     = `{"id": "a", "type": "COMPUTE", "vduId": "u", "resource": {"resourceId": "pod"}}`
)

// TestRefusals sends the simulator requests that an NFVO refuses.
func TestRefusals(t *testing.T) {
	t.Parallel()
	right := map[string]string{"Version": "1.4.0", "Accept": "application/json", "Content-Type": "application/json", "Authorization": "Basic dm5mbTpzM2NyZXQ="}
	cases := map[string]struct {
		reason string
		method string
		path   string
		header map[string]string // in place of the right ones
		body   string
		status int
	}{
		"granted":        {"all is there", "POST", "/grant/v1/grants", nil, request(instantiate + `"addResources": [` + added + `], `), 201},
		"no version":     {"a version is required", "POST", "/grant/v1/grants", map[string]string{"Version": ""}, request(instantiate), 400},
		"other version":  {"another is not served", "POST", "/grant/v1/grants", map[string]string{"Version": "2.0.0"}, request(instantiate), 406},
		"accept":         {"grants are JSON", "POST", "/grant/v1/grants", map[string]string{"Accept": "text/html"}, request(instantiate), 406},
		"media type":     {"requests are JSON", "POST", "/grant/v1/grants", map[string]string{"Content-Type": "text/plain"}, request(instantiate), 415},
		"no credentials": {"the client is known", "POST", "/grant/v1/grants", map[string]string{"Authorization": ""}, request(instantiate), 401},
		"wrong password": {"by its password", "POST", "/grant/v1/grants", map[string]string{"Authorization": "Basic dm5mbTp3cm9uZw=="}, request(instantiate), 401},
		"path":           {"there is one path", "POST", "/grant/v1/grant", nil, request(instantiate), 404},
		"method":         {"grants are not listed", "PUT", "/grant/v1/grants", nil, request(instantiate), 405},
		"no grant":       {"a grant has been asked for", "GET", "/grant/v1/grants/none", nil, "", 404},
		"no JSON":        {"a request is one", "POST", "/grant/v1/grants", nil, "{", 400},
		"unknown":        {"it has known attributes", "POST", "/grant/v1/grants", nil, request(instantiate + `"flavorId": "f", `), 400},
		"no operation":   {"it has an operation", "POST", "/grant/v1/grants", nil, request(""), 400},
		"needs none":     {"that needs a grant", "POST", "/grant/v1/grants", nil, request(`"operation": "MODIFY_INFO", `), 400},
		"no flavor":      {"an instantiation has a flavor", "POST", "/grant/v1/grants", nil, request(`"operation": "INSTANTIATE", `), 400},
		"no target":      {"a change of the package has a target", "POST", "/grant/v1/grants", nil, request(`"operation": "CHANGE_VNFPKG", `), 400},
		"same id":        {"definitions have ids of their own", "POST", "/grant/v1/grants", nil, request(instantiate + `"addResources": [` + added + `, ` + added + `], `), 400},
		"new pod":        {"a new resource does not exist", "POST", "/grant/v1/grants", nil, request(instantiate + `"addResources": [` + present + `], `), 400},
		"no pod":         {"one that exists is named", "POST", "/grant/v1/grants", nil, request(`"operation": "HEAL", "updateResources": [` + added + `], `), 400},
		"removed":        {"an instantiation removes nothing", "POST", "/grant/v1/grants", nil, request(instantiate + `"removeResources": [` + present + `], `), 400},
		"grant type":     {"a token is one of a client", "POST", "/token", nil, "grant_type=password", 400},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nfvo.New(nfvo.Config{User: "vnfm", Password: "s3cret"})
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
			for _, header := range []map[string]string{right, tc.header} {
				for key, value := range header {
					r.Header.Set(key, value)
				}
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("%s: the status is %d, want %d: %s", tc.reason, w.Code, tc.status, w.Body)
			}
			if all := s.Journal(); len(all) != 1 || all[0].Status != tc.status {
				t.Errorf("%s: the journal has %+v", tc.reason, all)
			}
		})
	}
}

// TestTokens issues tokens, which expire.
func TestTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	s := nfvo.New(nfvo.Config{User: "vnfm", Password: "s3cret", Tokens: true, Clock: func() time.Time { return now }})
	send := func(path, authorization, media, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		for key, value := range map[string]string{"Version": "1.4.0", "Accept": "application/json", "Content-Type": media, "Authorization": authorization} {
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	const form = "application/x-www-form-urlencoded"
	if w := send("/token", "Basic dm5mbTp3cm9uZw==", form, "grant_type=client_credentials"); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong secret gets %d: %s", w.Code, w.Body)
	}
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(send("/token", "Basic dm5mbTpzM2NyZXQ=", form, "grant_type=client_credentials").Body.Bytes(), &got); err != nil || got.Token == "" {
		t.Fatalf("there is no token: %v", err)
	}
	for _, step := range []struct {
		authorization string
		later         time.Duration
		status        int
	}{{"Basic dm5mbTpzM2NyZXQ=", 0, 401}, {"Bearer x", 0, 401}, {"Bearer " + got.Token, 0, 201}, {"Bearer " + got.Token, time.Minute, 401}} {
		now = now.Add(step.later)
		if w := send("/grant/v1/grants", step.authorization, "application/json", request(instantiate)); w.Code != step.status {
			t.Errorf("%s, after %s: the status is %d, want %d", fmt.Sprint(step.authorization[:6]), step.later, w.Code, step.status)
		}
	}
}
