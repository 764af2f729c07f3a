package tacker_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
)

const all = "/v1.0/vims"

// body returns a request for a Kubernetes VIM with a token. Each change is "field=JSON".
func body(name string, changes ...string) string {
	vim := map[string]any{
		"name": name, "type": "kubernetes", "auth_url": "https://10.0.0.1:6443", "vim_project": map[string]any{"name": "edge"},
		"auth_cred": map[string]any{"bearer_token": "s3cret"},
	}
	for _, change := range changes {
		field, value, _ := strings.Cut(change, "=")
		var decoded any
		if err := json.Unmarshal([]byte(value), &decoded); err != nil {
			panic(change)
		}
		if vim[field] = decoded; value == `"(none)"` {
			delete(vim, field)
		}
	}
	return vimBody(vim)
}

func vimBody(vim any) string {
	out, _ := json.Marshal(map[string]any{"vim": vim})
	return string(out)
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// TestVIMIsRegion registers a VIM, reads it as a region and as a VIM, changes it and
// deletes it.
func TestVIMIsRegion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.vim("a VIM is registered", "POST", all+".json", body("vim-kubernetes", `description="the east"`, `is_default="True"`, `extra={"area": "a", "level": 2}`))
	want := map[string]any{
		"id": nf.Region{ID: "vim-kubernetes"}.VIMID(), "name": "vim-kubernetes", "description": "the east", "type": "kubernetes", "tenant_id": "default",
		"auth_url": "https://10.0.0.1:6443", "auth_cred": map[string]any{"bearer_token": "***"}, "vim_project": map[string]any{"name": "edge"},
		"placement_attr": map[string]any{"regions": []any{"edge"}}, "is_default": true, "status": "ACTIVE", "tls_verified": true,
		"cloud_region_id": "vim-kubernetes", "extra": map[string]any{"area": "a", "level": 2.0}, "created_at": "2026-11-27T08:00:00Z", "updated_at": "2026-11-27T08:00:00Z",
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("the VIM (-want +got):\n%s", diff)
	}
	r := w.region("vim-kubernetes")
	if r.Origin != nf.OriginTacker || r.Type != nf.KubernetesRegion || r.DefaultNamespace != "edge" || string(r.Access.Token) != "s3cret" || r.Probe.Version == "" {
		t.Errorf("the region is %+v", r)
	}
	one := all + "/" + made["id"].(string)
	if got := w.vim("it is read with the suffix of clients", "GET", one+".json", ""); !cmp.Equal(want, got) {
		t.Errorf("the VIM is read as (-want +got):\n%s", cmp.Diff(want, got))
	}
	if got := w.vim("fields are selected", "GET", one+"?fields=id&fields=name&fields=none", ""); len(got) != 2 {
		t.Errorf("the fields are %v", got)
	}
	got := w.vim("it is changed, and fields that must not change are sent again", "PUT", one+".json",
		`{"vim": {"name": "The east", "type": "kubernetes", "auth_url": "https://10.0.0.1:6443", "description": "", "is_default": false, "extra": {}, "vim_project": {"name": ""}}}`)
	maps.Copy(want, map[string]any{
		"name": "The east", "description": "", "is_default": false, "extra": map[string]any{}, "vim_project": map[string]any{"name": "default"},
		"placement_attr": map[string]any{"regions": []any{"default"}},
	})
	if diff := cmp.Diff(want, got); diff != "" || len(w.probed) != 1 {
		t.Errorf("the VIM, after %d probes (-want +got):\n%s", len(w.probed), diff)
	}
	if status, text := w.ask("DELETE", one+".json", ""); status != http.StatusNoContent || text != "" {
		t.Errorf("it is deleted: %d %s", status, text)
	}
	w.fails("it is deleted", "GET", one, "", http.StatusNotFound, "VimNotFoundException", "cannot find VIM "+made["id"].(string)+": it does not exist")
}

// TestRegionIsVIM checks that regions of other APIs are VIMs.
func TestRegionIsVIM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, access := t.Context(), nf.Access{Server: "https://a", Insecure: true, Username: "u", Password: nf.Secret("s3cret")}
	region, err := w.Register(ctx, nf.Region{ID: "east", Origin: nf.OriginAPI, Description: "first", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	one := all + "/" + region.VIMID()
	got := w.vim("a region of the native API", "GET", one, "")
	want := map[string]any{"username": "u", "password": "***", "ssl_ca_cert": "None"}
	if got["name"] != "east" || got["tls_verified"] != false || got["auth_url"] != "https://a" || !cmp.Equal(got["auth_cred"], any(want)) {
		t.Errorf("the VIM is %v", got)
	}
	w.state.Condition = nf.RegionUnreachable
	if got := w.vim("it is changed as a VIM", "PUT", one, `{"vim": {"name": "The east", "is_default": true}}`); got["status"] != "UNREACHABLE" {
		t.Errorf("the VIM is %v", got)
	}
	if _, err := w.UpdateRegion(ctx, "east", func(r *nf.Region) error { r.Description = "second"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := w.vim("and as a region", "GET", one, ""); got["name"] != "The east" || got["is_default"] != true || got["description"] != "second" {
		t.Errorf("the VIM is %v", got)
	}
	if _, err := w.Enlist(ctx, nf.Region{ID: "bare", Origin: nf.OriginAAI, AAI: &nf.AAISource{Reason: "password is missing"}}); err != nil {
		t.Fatal(err)
	}
	bare := w.vim("a region without access gets one", "PUT", all+"/"+nf.Region{ID: "bare"}.VIMID(), body("bare", `type="(none)"`))
	if bare["auth_url"] != "https://10.0.0.1:6443" || w.region("bare").AAI != nil {
		t.Errorf("the VIM is %v", bare)
	}
}

// TestCredentials registers a VIM with each form of credential.
func TestCredentials(t *testing.T) {
	t.Parallel()
	ca, _ := pair(t)
	certificate, key := pair(t)
	line := strings.ReplaceAll(ca, "\n", " ")
	file := "apiVersion: v1\nkind: Config\n"
	oidc := &nf.OIDC{TokenURL: "https://id/token", ClientID: "c", ClientSecret: nf.Secret("s3cret-c"), Username: "u", Password: nf.Secret("s3cret"), CA: []byte(ca)}
	const server = "https://10.0.0.1:6443"
	cases := map[string]struct {
		reason, given string
		want          nf.Access
		shown         string
	}{
		"Token":    {"a token and a CA", `{"bearer_token": "s3cret", "ssl_ca_cert": ` + quoted(ca) + `}`, nf.Access{Token: nf.Secret("s3cret"), CA: []byte(ca)}, `{"bearer_token": "***", "ssl_ca_cert": "***"}`},
		"Line":     {"YAML has folded both", `{"bearer_token": " s3cret\n", "ssl_ca_cert": ` + quoted(line) + `}`, nf.Access{Token: nf.Secret("s3cret"), CA: []byte(ca)}, `{"bearer_token": "***", "ssl_ca_cert": "***"}`},
		"System":   {"without a CA, the server is verified with those of the system", `{"bearer_token": "s3cret", "ssl_ca_cert": null}`, nf.Access{Token: nf.Secret("s3cret")}, `{"bearer_token": "***"}`},
		"Empty":    {"an empty CA is none", `{"bearer_token": "s3cret", "ssl_ca_cert": ""}`, nf.Access{Token: nf.Secret("s3cret")}, `{"bearer_token": "***"}`},
		"None":     {"None stands for no verification", `{"bearer_token": "s3cret", "ssl_ca_cert": "None"}`, nf.Access{Token: nf.Secret("s3cret"), Insecure: true}, `{"bearer_token": "***", "ssl_ca_cert": "None"}`},
		"none":     {"in every spelling", `{"bearer_token": "s3cret", "ssl_ca_cert": " nONE\n"}`, nf.Access{Token: nf.Secret("s3cret"), Insecure: true}, `{"bearer_token": "***", "ssl_ca_cert": "None"}`},
		"Basic":    {"a user and a password", `{"username": "u", "password": "s3cret"}`, nf.Access{Username: "u", Password: nf.Secret("s3cret")}, `{"username": "u", "password": "***"}`},
		"First":    {"a user precedes a token", `{"username": "u", "password": "s3cret", "bearer_token": "s3cret-t"}`, nf.Access{Username: "u", Password: nf.Secret("s3cret")}, `{"username": "u", "password": "***"}`},
		"OIDC":     {"OIDC precedes both, and its provider has the same CA", `{"oidc_token_url": "https://id/token", "client_id": "c", "client_secret": "s3cret-c", "username": "u", "password": "s3cret", "bearer_token": "s3cret-t", "ssl_ca_cert": ` + quoted(line) + `}`, nf.Access{CA: []byte(ca), OIDC: oidc}, `{"oidc_token_url": "https://id/token", "client_id": "c", "client_secret": "***", "username": "u", "password": "***", "ssl_ca_cert": "***"}`},
		"Pair":     {"a client certificate", `{"client_certificate": ` + quoted(strings.ReplaceAll(certificate, "\n", " ")) + `, "client_key": ` + quoted(strings.ReplaceAll(key, "\n", " ")) + `}`, nf.Access{Certificate: []byte(certificate), Key: nf.Secret(key)}, `{"client_certificate": "***", "client_key": "***"}`},
		"File":     {"a kubeconfig", `{"kubeconfig": ` + quoted(file) + `}`, nf.Access{Token: nf.Secret("s3cret-file"), Kubeconfig: nf.Secret(file)}, `{"kubeconfig": "***"}`},
		"FileBase": {"a kubeconfig in base64", `{"kubeconfig": "` + base64.StdEncoding.EncodeToString([]byte(file)) + `"}`, nf.Access{Token: nf.Secret("s3cret-file"), Kubeconfig: nf.Secret(file)}, `{"kubeconfig": "***"}`},
	}
	w := newWorld(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.t = t
			got := w.vim(tc.reason, "POST", all, body("v-"+name, "auth_cred="+tc.given))
			tc.want.Server = server
			access := w.region("v-" + name).Access
			if !access.Equal(tc.want) || string(access.Kubeconfig) != string(tc.want.Kubeconfig) {
				t.Errorf("%s: the access is not the one that was given", tc.reason)
			}
			var shown any
			if err := json.Unmarshal([]byte(tc.shown), &shown); err != nil || !cmp.Equal(shown, got["auth_cred"]) || got["tls_verified"] != !tc.want.Insecure {
				t.Errorf("%s: auth_cred is %v, verified %v", tc.reason, got["auth_cred"], got["tls_verified"])
			}
		})
	}
}

// TestCredentialsChange changes credentials in steps.
func TestCredentialsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ca, _ := pair(t)
	one := all + "/" + w.vim("a VIM", "POST", all, body("v", `auth_cred={"bearer_token": "s3cret", "ssl_ca_cert": "None"}`))["id"].(string)
	change := func(reason, credentials string, want nf.Access) {
		t.Helper()
		w.vim(reason, "PUT", one, `{"vim": {"auth_cred": `+credentials+`}}`)
		want.Server = "https://10.0.0.1:6443"
		if !w.region("v").Access.Equal(want) {
			t.Errorf("%s: the access is another one", reason)
		}
	}
	change("the CA alone", `{"ssl_ca_cert": `+quoted(ca)+`}`, nf.Access{Token: nf.Secret("s3cret"), CA: []byte(ca)})
	change("a new credential keeps the CA", `{"username": "u", "password": "s3cret"}`, nf.Access{Username: "u", Password: nf.Secret("s3cret"), CA: []byte(ca)})
	change("no verification", `{"ssl_ca_cert": "NONE"}`, nf.Access{Username: "u", Password: nf.Secret("s3cret"), Insecure: true})
	change("nothing at all", `{}`, nf.Access{Username: "u", Password: nf.Secret("s3cret"), Insecure: true})
	w.fails("a wrong credential", "PUT", one, `{"vim": {"auth_cred": {"bearer_token": "s3cret-wrong"}}}`, http.StatusBadGateway, "VimUnauthorizedException",
		"cannot update cloud region v: cannot reach API server https://10.0.0.1:6443: it refuses")
	change("changes nothing", `{}`, nf.Access{Username: "u", Password: nf.Secret("s3cret"), Insecure: true})
	w.vim("a kubeconfig", "PUT", one, `{"vim": {"auth_cred": {"kubeconfig": "kind: Config"}}}`)
	w.fails("the CA is part of the kubeconfig", "PUT", one, `{"vim": {"auth_cred": {"ssl_ca_cert": "None"}}}`, http.StatusBadRequest, "InvalidInput",
		`cannot use VIM "v": auth_cred.ssl_ca_cert: needs a credential: the present one is a kubeconfig`)
}

// TestOpenStack stores, changes and deletes an OpenStack VIM, and logs in when its
// connection is another one.
func TestOpenStack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.vim("openstack is the default type", "POST", all, body("os", `type="(none)"`, `auth_url="https://203.0.113.1/v3"`,
		`auth_cred={"username": "u", "password": "s3cret", "user_domain_name": "Default", "cert_verify": "False"}`,
		`vim_project={"name": "nfv", "project_domain_name": "Default"}`))
	if made["type"] != "openstack" || made["status"] != "UNKNOWN" || made["auth_url"] != "https://203.0.113.1/v3" || made["tls_verified"] != false {
		t.Errorf("the VIM is %v", made)
	}
	want := nf.OpenStack{AuthURL: "https://203.0.113.1/v3", Username: "u", Password: nf.Secret("s3cret"), UserDomain: "Default", Project: "nfv", ProjectDomain: "Default", Insecure: true}
	if diff := cmp.Diff(want, *w.region("os").VIM.OpenStack); diff != "" {
		t.Errorf("the keys are stored (-want +got):\n%s", diff)
	}
	first, one := want, all+"/"+made["id"].(string)
	got := w.vim("keys are changed", "PUT", one, `{"vim": {"auth_cred": {"password": "s3cret-2", "cert_verify": true}, "vim_project": {"name": "nfv2"}}}`)
	want.Password, want.Insecure, want.Project, want.ProjectDomain = nf.Secret("s3cret-2"), false, "nfv2", ""
	if diff := cmp.Diff(want, *w.region("os").VIM.OpenStack); diff != "" || got["tls_verified"] != true {
		t.Errorf("the keys are changed (-want +got):\n%s", diff)
	}
	w.vim("a description", "PUT", one, `{"vim": {"description": "changed"}}`)
	w.vim("a VIM in a region of the cloud", "POST", all, body("two", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret"}`, `extra={"region": "RegionTwo"}`))
	two := w.region("two").VIM.OpenStack
	if two.Region != "RegionTwo" {
		t.Errorf("its region is %q", two.Region)
	}
	w.vim("its description", "PUT", all+"/"+nf.Region{ID: "two"}.VIMID(), `{"vim": {"description": "changed", "extra": {"region": "RegionTwo", "area": "a"}}}`)
	if got := w.region("two").VIM.OpenStack; got.Region != "RegionTwo" {
		t.Errorf("after a change of something else, its region is %q", got.Region)
	}
	w.logins = slices.DeleteFunc(w.logins, func(o nf.OpenStack) bool { return o.Region != "" })
	if diff := cmp.Diff([]nf.OpenStack{first, want}, w.logins); diff != "" || len(w.probed) > 0 {
		t.Errorf("%d probes; the logins are (-want +got):\n%s", len(w.probed), diff)
	}
	if status, text := w.ask("DELETE", one, ""); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
}

// TestVIMList selects VIMs by filters, as clients look them up by name and id.
func TestVIMList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := func(name string) string { return nf.Region{ID: name}.VIMID() }
	for _, name := range []string{"a", "b"} {
		w.vim("a VIM", "POST", all, body(name, fmt.Sprintf("is_default=%t", name == "b")))
	}
	w.vim("an OpenStack VIM", "POST", all, body("os", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret"}`))
	cases := map[string]struct{ reason, query, want string }{
		"All":     {"without a filter", "?fields=name", `[{"name":"a"},{"name":"b"},{"name":"os"}]`},
		"Name":    {"a client looks up a name", ".json?name=b&fields=id", `[{"id":"` + id("b") + `"}]`},
		"ID":      {"a client looks up an id", ".json?id=" + id("a") + "&fields=id", `[{"id":"` + id("a") + `"}]`},
		"Upper":   {"a UUID has no case", "?id=" + strings.ToUpper(id("a")) + "&fields=name", `[{"name":"a"}]`},
		"NotID":   {"a name is no id", "?id=a&fields=id", `[]`},
		"Several": {"any of two names", "?name=a&name=os&fields=name", `[{"name":"a"},{"name":"os"}]`},
		"Type":    {"by type", "?type=openstack&fields=name", `[{"name":"os"}]`},
		"Default": {"by default, as Python writes it", "?is_default=True&fields=name", `[{"name":"b"}]`},
		"Status":  {"by status", "?status=UNKNOWN&fields=name", `[{"name":"os"}]`},
		"Tenant":  {"there is one tenant", "?tenant_id=other", `[]`},
		"Both":    {"every filter must match", "?name=a&type=openstack", `[]`},
	}
	for name, tc := range cases {
		if status, text := w.ask("GET", all+tc.query, ""); status != http.StatusOK || text != `{"vims":`+tc.want+`}` {
			t.Errorf("%s: %s: %d %s", name, tc.reason, status, text)
		}
	}
}

// TestDefaultVIM checks that two requests at the same time do not store two defaults.
func TestDefaultVIM(t *testing.T) {
	t.Parallel()
	const duplicate = "VimDefaultDuplicateException"
	w := newWorld(t)
	first, second := nf.Region{ID: "first"}.VIMID(), nf.Region{ID: "second"}.VIMID()
	message := func(id string) string {
		return "cannot set the default VIM: it is VIM " + id + "; set is_default of that to false first"
	}
	w.before = func() { w.vim("the other request", "POST", all, body("first", "is_default=true")) }
	w.fails("the other request is earlier", "POST", all, body("second", "is_default=true"), http.StatusConflict, duplicate, message(first))
	w.fails("nothing is stored", "GET", all+"/"+second, "", http.StatusNotFound, "VimNotFoundException", "cannot find VIM "+second+": it does not exist")
	w.fails("the default is there", "POST", all, body("second", "is_default=true"), http.StatusConflict, duplicate, message(first))
	w.vim("not the default", "POST", all, body("second"))
	w.fails("a change has the same rule", "PUT", all+"/"+second, `{"vim": {"is_default": "true"}}`, http.StatusConflict, duplicate, message(first))
	w.vim("the default ends", "PUT", all+"/"+first, `{"vim": {"is_default": "False"}}`)
	w.before = func() { w.vim("the other request", "PUT", all+"/"+first, `{"vim": {"is_default": true}}`) }
	w.fails("the other change is earlier", "PUT", all+"/"+second, `{"vim": {"is_default": true, "auth_cred": {"bearer_token": "s3cret-2"}}}`, http.StatusConflict, duplicate, message(first))
	if got := w.vim("the VIM is not the default", "GET", all+"/"+second, ""); got["is_default"] != false {
		t.Errorf("the VIM is %v", got)
	}
}

// TestNew checks that an API needs its parts.
func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := tacker.New(tacker.Config{}); err == nil {
		t.Error("an API without regions is created")
	}
}
