package openstack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

const login = `{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "ann", "password": "secret", "domain": {"name": "Default"}}}},
	"scope": {"project": {"name": "edge", "domain": {"id": "default"}}}}}`

// world is a simulator and a client of it.
type world struct {
	*openstack.Simulator

	now   time.Time
	token string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}
	s, err := openstack.New(openstack.Config{
		Username: "ann", UserDomain: "Default", Password: "secret", Project: "edge", ProjectDomain: "Default", Boot: time.Minute, Clock: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Stock([]openstack.Named{{ID: "i1", Name: "debian"}}, []openstack.Named{{ID: "f1", Name: "medium"}}, nil, []string{"ops"},
		[]openstack.Network{{ID: "n1", Name: "management", Prefix: "10.0.0."}})
	w.Simulator = s
	resp := w.do(http.MethodPost, "/identity/v3/auth/tokens", login)
	if resp.Code != http.StatusCreated {
		t.Fatalf("the login is rejected: %d %s", resp.Code, resp.Body)
	}
	w.token = resp.Header().Get("X-Subject-Token")
	return w
}

// do sends a request; header is a list of names and values.
func (w *world) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-Auth-Token", w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp := httptest.NewRecorder()
	w.ServeHTTP(resp, r)
	return resp
}

// port creates a port and returns its id.
func (w *world) port(t *testing.T) string {
	t.Helper()
	var out struct{ Port struct{ ID string } }
	if err := json.Unmarshal(w.do(http.MethodPost, "/network/v2.0/ports", `{"port": {"network_id": "n1"}}`).Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Port.ID
}

func server(port, more string) string {
	return `{"server": {"name": "a", "imageRef": "i1", "flavorRef": "f1", "networks": [{"port": "` + port + `"}]` + more + `}}`
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const servers, ports = "/compute/v2.1/servers", "/network/v2.0/ports"
	cases := map[string]struct {
		reason             string
		method, path, body string // PORT is the id of a free port
		header             []string
		status             int
	}{
		"Server":       {"a complete request is accepted", "POST", servers, server("PORT", ""), nil, 202},
		"Token":        {"each call needs a token", "GET", servers + "/detail", "", []string{"X-Auth-Token", "x"}, 401},
		"Password":     {"a wrong password gets none", "POST", "/identity/v3/auth/tokens", strings.Replace(login, "secret", "x", 1), nil, 401},
		"Method":       {"no other method is simulated", "POST", "/identity/v3/auth/tokens", strings.Replace(login, `["password"]`, `["token"]`, 1), nil, 400},
		"Media":        {"a body is JSON", "POST", servers, server("PORT", ""), []string{"Content-Type", "text/plain"}, 415},
		"UnknownField": {"Nova knows all fields", "POST", servers, server("PORT", `, "color": "red"`), nil, 400},
		"Tags":         {"tags need a later microversion than the simulated one", "POST", servers, server("PORT", `, "tags": ["a"]`), nil, 400},
		"Microversion": {"an unknown version is rejected", "GET", servers + "/detail", "", []string{"OpenStack-API-Version", "compute 2.999"}, 406},
		"Query":        {"an unknown query is rejected", "GET", servers + "/detail?color=red", "", nil, 400},
		"Regexp":       {"the name is a regular expression", "GET", servers + "/detail?name=(", "", nil, 400},
		"Image":        {"the image must exist", "POST", servers, strings.Replace(server("PORT", ""), "i1", "x", 1), nil, 400},
		"Flavor":       {"and the flavor", "POST", servers, strings.Replace(server("PORT", ""), "f1", "x", 1), nil, 400},
		"Key":          {"and the key pair", "POST", servers, server("PORT", `, "key_name": "x"`), nil, 400},
		"NoPort":       {"and the port", "POST", servers, server("x", ""), nil, 400},
		"Gone":         {"a server that does not exist cannot be deleted", "DELETE", servers + "/x", "", nil, 404},
		"Network":      {"the network of a port must exist", "POST", ports, `{"port": {"network_id": "x"}}`, nil, 404},
		"Group":        {"and its security groups", "POST", ports, `{"port": {"network_id": "n1", "security_groups": ["x"]}}`, nil, 404},
		"PortField":    {"Neutron knows all fields", "POST", ports, `{"port": {"network_id": "n1", "color": "red"}}`, nil, 400},
		"Path":         {"nothing else is there", "GET", "/volume/v3", "", nil, 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			resp := w.do(tc.method, tc.path, strings.Replace(tc.body, "PORT", w.port(t), 1), tc.header...)
			if resp.Code != tc.status {
				t.Errorf("%s: the status is %d, want %d: %s", tc.reason, resp.Code, tc.status, resp.Body)
			}
		})
	}
}

// TestStates follows a server from its creation to its end.
func TestStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := w.port(t)
	if got := w.do(http.MethodPost, "/compute/v2.1/servers", server(port, "")).Code; got != http.StatusAccepted {
		t.Fatalf("the server is not created: %d", got)
	}
	if got := w.do(http.MethodPost, "/compute/v2.1/servers", server(port, "")).Code; got != http.StatusConflict {
		t.Errorf("a second server with the port gets %d, want 409", got)
	}
	if got := w.Servers(); len(got) != 1 || got[0] != "a BUILD" {
		t.Errorf("the servers are %q, want one that starts", got)
	}
	w.now = w.now.Add(time.Minute)
	if got := w.Servers(); len(got) != 1 || got[0] != "a ACTIVE" {
		t.Errorf("the servers are %q, want one that runs", got)
	}
	w.Lose("a")
	if got := w.Ports(); len(w.Servers()) != 0 || len(got) != 1 {
		t.Errorf("the servers are %q with the ports %q, want that the port remains", w.Servers(), got)
	}
	w.now = w.now.Add(time.Hour)
	if got := w.do(http.MethodGet, "/compute/v2.1/servers/detail", "").Code; got != http.StatusUnauthorized {
		t.Errorf("an expired token gets %d, want 401", got)
	}
	for _, e := range w.Journal() {
		if strings.Contains(e.Body, "secret") {
			t.Errorf("the journal has the password: %+v", e)
		}
	}
}
