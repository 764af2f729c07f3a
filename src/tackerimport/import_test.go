package tackerimport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/tackerimport"
)

// peer is a simulated Tacker, or a simulated service that is imported into. It refuses
// requests that neither has.
type peer struct {
	t *testing.T

	mu                 sync.Mutex
	vims               []map[string]any
	packages           map[string]map[string]any
	order              []string
	contents           map[string]string
	enveloped, failing bool
	writes             int
}

func newPeer(t *testing.T) (*peer, tackerimport.API) {
	t.Helper()
	p := &peer{t: t, packages: map[string]map[string]any{}, contents: map[string]string{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, tackerimport.API{URL: server.URL + "/", Client: server.Client()}
}

func (p *peer) add(id, vnfd, operational, content string) {
	p.order = append(p.order, id)
	p.packages[id] = map[string]any{"id": id, "onboardingState": "CREATED", "operationalState": "DISABLED"}
	if content != "" {
		p.packages[id] = map[string]any{"id": id, "vnfdId": vnfd, "vnfProductName": "Sample", "onboardingState": "ONBOARDED", "operationalState": operational}
		p.contents[id] = content
	}
}

// ServeHTTP implements http.Handler.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const packages = "/vnfpkgm/v1/vnf_packages"
	body, _ := io.ReadAll(r.Body)
	var in map[string]any
	if r.Header.Get("Content-Type") == "application/json" && json.Unmarshal(body, &in) != nil {
		p.t.Errorf("%s %s is not JSON: %s", r.Method, r.URL, body)
	}
	if r.Method != http.MethodGet {
		p.writes++
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, packages+"/"), "/")
	found := p.packages[id]
	answer := func(status int, document any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(document)
	}
	switch {
	case p.failing:
		answer(http.StatusServiceUnavailable, map[string]any{"TackerError": map[string]any{"message": "out of order", "type": "x", "detail": ""}})
	case r.Method+r.URL.Path == "GET/v1.0/vims":
		answer(http.StatusOK, map[string]any{"vims": p.vims})
	case r.Method+r.URL.Path == "POST/v1.0/vims":
		p.vims = append(p.vims, in["vim"].(map[string]any))
		answer(http.StatusCreated, in)
	case r.Method+r.URL.Path == "GET"+packages:
		p.page(w, r, answer)
	case r.Method+r.URL.Path == "POST/v1/packages":
		id, _ := in["csar_id"].(string)
		p.packages[id] = map[string]any{"id": id, "onboardingState": "CREATED", "operationalState": "DISABLED", "userDefinedData": in["user_data"], "project": in["project"]}
		answer(http.StatusCreated, p.packages[id])
	case found == nil:
		answer(http.StatusNotFound, map[string]any{"status": 404, "detail": "there is none"})
	case r.Method == http.MethodGet && what == "":
		answer(http.StatusOK, found)
	case r.Method == http.MethodPatch && what == "":
		found["operationalState"] = in["operationalState"]
		answer(http.StatusOK, in)
	case r.Method == http.MethodGet && what == "package_content":
		_, _ = io.WriteString(w, p.contents[id])
	case r.Method == http.MethodPut && what == "package_content" && strings.HasPrefix(string(body), "bad"):
		answer(http.StatusBadRequest, map[string]any{"status": 400, "detail": "a file differs from its hash"})
	case r.Method == http.MethodPut && what == "package_content":
		p.contents[id], found["onboardingState"], found["operationalState"] = string(body), "ONBOARDED", "ENABLED"
		found["vnfdId"], _, _ = strings.Cut(string(body), " ")
		w.WriteHeader(http.StatusAccepted)
	default:
		p.t.Errorf("unexpected %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// page answers with one package, and refers to the next one.
func (p *peer) page(w http.ResponseWriter, r *http.Request, answer func(int, any)) {
	if !r.URL.Query().Has("all_fields") {
		p.t.Errorf("the list is asked for without all fields: %s", r.URL)
	}
	at := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("nextpage_opaque_marker"), &at)
	page := []any{}
	if at < len(p.order) {
		page = append(page, p.packages[p.order[at]])
	}
	if at+1 < len(p.order) {
		w.Header().Set("Link", fmt.Sprintf(`<http://elsewhere.invalid%s?all_fields&nextpage_opaque_marker=%d>;rel="next"`, r.URL.Path, at+1))
	}
	if p.enveloped {
		answer(http.StatusOK, map[string]any{"vnf_packages": page})
		return
	}
	answer(http.StatusOK, page)
}

// results returns the result of each item, and fails if a credential is in the report.
func results(t *testing.T, r *migration.Report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, it := range r.Items {
		out[it.Kind+" "+it.Name] = string(it.Result)
	}
	if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("the report has a credential: %s, %v", text, err)
	}
	return out
}

func TestImport(t *testing.T) {
	t.Parallel()
	for _, enveloped := range []bool{false, true} {
		from, source := newPeer(t)
		to, target := newPeer(t)
		from.enveloped = enveloped
		from.vims = []map[string]any{
			{"id": "v1", "name": "east", "type": "kubernetes", "auth_url": "https://east:6443", "auth_cred": map[string]any{"bearer_token": "***"}, "is_default": true, "vim_project": map[string]any{"name": "ns"}},
			{"id": "v2", "name": "west", "type": "kubernetes", "auth_url": "https://west:6443", "is_default": false},
			{"id": "v3", "name": "there", "type": "kubernetes", "auth_url": "https://there:6443/", "is_default": false},
			{"id": "v4", "name": "moved", "type": "kubernetes", "auth_url": "https://moved:6443", "is_default": false},
		}
		to.vims = []map[string]any{
			{"name": "there", "type": "kubernetes", "auth_url": "https://there:6443", "is_default": true},
			{"name": "moved", "type": "kubernetes", "auth_url": "https://elsewhere:6443", "is_default": false},
		}
		from.add("p-empty", "", "", "")
		from.add("p-one", "vnfd1", "ENABLED", "vnfd1 one")
		from.add("p-off", "vnfd2", "DISABLED", "vnfd2 two")
		from.add("p-bad", "vnfd3", "ENABLED", "bad")
		cfg := tackerimport.Config{From: source, To: target, Project: "blue", Credentials: map[string]map[string]any{"east": {"bearer_token": "s3cret"}}}
		report, err := tackerimport.Import(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"vim east": "imported", "vim west": "failed", "vim there": "there already", "vim moved": "different",
			"package p-empty": "imported", "package p-one Sample": "imported", "package p-off Sample": "imported", "package p-bad Sample": "failed",
		}
		if diff := cmp.Diff(want, results(t, report)); diff != "" {
			t.Errorf("the first import (-want +got):\n%s", diff)
		}
		east := to.vims[2]
		if cmp.Diff(map[string]any{"bearer_token": "s3cret"}, east["auth_cred"]) != "" || east["is_default"] != false || east["id"] != nil {
			t.Errorf("the VIM is %v", east)
		}
		if to.contents["p-one"] != "vnfd1 one" || to.packages["p-off"]["operationalState"] != "DISABLED" || to.packages["p-one"]["project"] != "blue" {
			t.Errorf("the packages are %v", to.packages)
		}
		to.writes = 0
		from.contents["p-bad"] = "vnfd3 mended"
		if report, err = tackerimport.Import(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		want["vim east"], want["package p-empty"], want["package p-one Sample"], want["package p-off Sample"] = "there already", "there already", "there already", "there already"
		want["package p-bad Sample"] = "imported"
		if diff := cmp.Diff(want, results(t, report)); diff != "" || to.writes != 1 {
			t.Errorf("the second import, with %d writes (-want +got):\n%s", to.writes, diff)
		}
		if from.writes > 0 {
			t.Errorf("%d requests change Tacker", from.writes)
		}
	}
}

// TestImportFails has sides that do not answer.
func TestImportFails(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"source", "target"} {
		from, source := newPeer(t)
		to, target := newPeer(t)
		from.failing, to.failing = side == "source", side == "target"
		_, err := tackerimport.Import(t.Context(), tackerimport.Config{From: source, To: target})
		if err == nil || !strings.Contains(err.Error(), "status 503: out of order") {
			t.Errorf("the %s does not answer: %v", side, err)
		}
	}
	if _, err := tackerimport.Import(t.Context(), tackerimport.Config{}); err == nil {
		t.Error("an import without its sides is accepted")
	}
}
