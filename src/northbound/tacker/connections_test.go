package tacker_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
)

// connection returns a connection of a request for a VNF.
func connection(server string, access map[string]any) nf.VIMConnectionRequest {
	return nf.VIMConnectionRequest{
		VIM: "8343f55f-0000-4000-8000-000000000000", Type: "ETSINFV.KUBERNETES.V_1", Interface: map[string]any{"endpoint": server, "ssl_ca_cert": "None"}, Access: access,
	}
}

// TestConnections registers the VIMs of requests one after another.
func TestConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.vim("one VIM is registered", "POST", "/v1.0/vims", `{"vim": {"name": "known", "type": "kubernetes", "auth_url": "https://known:6443", "auth_cred": {"bearer_token": "s3cret-a"}, "vim_project": {"name": "default"}}}`)
	known := nf.Region{ID: "known"}.VIMID()
	register := func(project string, c nf.VIMConnectionRequest) string {
		t.Helper()
		got, err := tacker.NewConnections(w).Register(t.Context(), project, map[string]nf.VIMConnectionRequest{"vim1": c})
		if err != nil {
			t.Fatal(err)
		}
		return got["vim1"].VIM
	}
	token := func(text string) map[string]any {
		return map[string]any{"bearer_token": text, "region": "RegionOne", "cert_verify": true}
	}
	asIs := connection("https://new:6443", nil)
	named := connection("https://new:6443", token("s3cret-a"))
	named.VIM = strings.ToUpper(known)
	other := connection("https://new:6443", token("s3cret-a"))
	other.Type = "VMWARE.VCLOUD"
	for reason, c := range map[string]nf.VIMConnectionRequest{
		"without an access, it names a VIM": asIs, "its VIM is registered": named, "its server is registered": connection("https://known:6443/", token("s3cret-a")), "it is a VIM of another type": other,
	} {
		if got := register("red", c); got != c.VIM {
			t.Errorf("%s: it has the VIM %s", reason, got)
		}
	}
	if len(w.probed) != 1 {
		t.Errorf("%d accesses were probed", len(w.probed))
	}

	first := register("red", connection("https://new:6443/", token("s3cret-a")))
	again := register("red", connection("https://new:6443", token("s3cret-a")))
	if first != again || len(w.probed) != 2 {
		t.Errorf("the same access is registered twice, as %s and %s, and probed %d times", first, again, len(w.probed)-1)
	}
	if changed := register("red", connection("https://new:6443", map[string]any{"username": "u", "password": "s3cret-b"})); changed != first || len(w.probed) != 3 {
		t.Errorf("other credentials make the VIM %s of %s", changed, first)
	}
	if other := register("blue", connection("https://new:6443", token("s3cret-c"))); other == first {
		t.Error("another project uses the credentials of the first one")
	}
	got := map[string]string{}
	regions, err := w.Regions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if r.Origin == nf.OriginVNF {
			got[r.Description] = r.Access.Server + " " + r.Access.Username + string(r.Access.Password) + string(r.Access.Token)
			if !r.Access.Insecure || r.Type != nf.KubernetesRegion {
				t.Errorf("the region is %+v", r)
			}
		}
	}
	want := map[string]string{
		"given in requests for VNFs of the project red":  "https://new:6443 us3cret-b",
		"given in requests for VNFs of the project blue": "https://new:6443 s3cret-c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the regions (-want +got):\n%s", diff)
	}
}

// cloudConnection returns a connection of a request with an OpenStack cloud.
func cloudConnection(access map[string]any, edit ...func(map[string]any)) nf.VIMConnectionRequest {
	info := map[string]any{"endpoint": "https://cloud/v3", "skipCertificateVerification": true}
	for _, e := range edit {
		e(info)
	}
	return nf.VIMConnectionRequest{VIM: "8343f55f-0000-4000-8000-000000000000", Type: "ETSINFV.OPENSTACK_KEYSTONE.V_3", Interface: info, Access: access}
}

// TestCloudConnections registers the OpenStack clouds of requests one after another.
func TestCloudConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.vim("one VIM is registered", "POST", "/v1.0/vims", `{"vim": {"name": "known", "auth_url": "https://cloud/v3/", "auth_cred": {"username": "u", "password": "s3cret-a"}, "vim_project": {"name": "shared"}}}`)
	access := func(project, region, password string) map[string]any {
		return map[string]any{"username": "u", "password": password, "userDomain": "Default", "project": project, "projectDomain": "Default", "region": region}
	}
	register := func(project string, access map[string]any, vim ...string) string {
		t.Helper()
		c := cloudConnection(access)
		if len(vim) > 0 {
			c.VIM = vim[0]
		}
		got, err := tacker.NewConnections(w).Register(t.Context(), project, map[string]nf.VIMConnectionRequest{"vim1": c})
		if err != nil {
			t.Fatal(err)
		}
		return got["vim1"].VIM
	}
	if got := register("red", access("shared", "", "s3cret-b")); got != made["id"] || len(w.logins) != 1 {
		t.Errorf("a project of the registered VIM: it has the VIM %s after %d logins", got, len(w.logins))
	}
	if got := register("red", map[string]any{"region": "RegionOne"}, made["id"].(string)); got != made["id"] || len(w.logins) != 1 {
		t.Errorf("the id of the registered VIM, with an access of another form: it has the VIM %s after %d logins", got, len(w.logins))
	}
	first := register("red", access("nfv", "", "s3cret-b"))
	for _, password := range []string{"s3cret-b", "s3cret-c"} {
		if got := register("red", access("nfv", "", password)); got != first {
			t.Errorf("the same project with the password %s has the VIM %s, want %s", password, got, first)
		}
	}
	if got := register("red", access("nfv", "RegionTwo", "s3cret-b")); got == first {
		t.Error("another region of the cloud is the same VIM")
	}
	if got := register("blue", access("nfv", "", "s3cret-b")); got == first {
		t.Error("another project uses the credentials of the first one")
	}
	later := w.vim("the project is registered later", "POST", "/v1.0/vims", `{"vim": {"name": "later", "auth_url": "https://cloud/v3", "auth_cred": {"username": "other", "password": "s3cret-a"}, "vim_project": {"name": "nfv"}}}`)
	if got := register("red", access("nfv", "", "s3cret-c")); got != first {
		t.Errorf("the VIM of the request becomes %s", got)
	}
	again := w.vim("and once more", "POST", "/v1.0/vims", `{"vim": {"name": "again", "auth_url": "https://cloud/v3", "auth_cred": {"username": "other", "password": "s3cret-a"}, "vim_project": {"name": "nfv"}}}`)
	for _, id := range []string{later["id"].(string), again["id"].(string)} {
		if got := register("red", access("nfv", "", "s3cret-c"), id); got != id {
			t.Errorf("the request names the VIM %s, and gets %s", id, got)
		}
	}
	regions, err := w.Regions(t.Context())
	if err != nil || len(regions) != 6 {
		t.Fatalf("%d regions, %v", len(regions), err)
	}
	for _, r := range regions {
		if r.VIMID() == first {
			want := nf.OpenStack{AuthURL: "https://cloud/v3", Username: "u", Password: nf.Secret("s3cret-c"), UserDomain: "Default", Project: "nfv", ProjectDomain: "Default", Insecure: true}
			if diff := cmp.Diff(want, *r.VIM.OpenStack); diff != "" || r.Origin != nf.OriginVNF || r.Type != nf.OpenStackRegion {
				t.Errorf("the region is %s of %s (-want +got):\n%s", r.Type, r.Origin, diff)
			}
		}
	}
}

// TestConnectionsRejected registers VIMs that cannot be used. No region comes to be.
func TestConnectionsRejected(t *testing.T) {
	t.Parallel()
	token := map[string]any{"bearer_token": "s3cret-a"}
	cases := map[string]struct {
		reason string
		given  nf.VIMConnectionRequest
		kind   nf.Kind
		fields []string
	}{
		"Endpoint":   {"a server has an address", connection("", token), nf.Invalid, []string{"vimConnectionInfo.vim1.interfaceInfo.endpoint"}},
		"URL":        {"which is a URL", connection("new:6443", token), nf.Invalid, []string{"vimConnectionInfo.vim1.interfaceInfo.endpoint"}},
		"Credential": {"one credential is needed", connection("https://new:6443", map[string]any{"region": "x"}), nf.Invalid, []string{"vimConnectionInfo.vim1.accessInfo"}},
		"Mask":       {"a mask is none", connection("https://new:6443", map[string]any{"bearer_token": "***"}), nf.Invalid, []string{"vimConnectionInfo.vim1.accessInfo.bearer_token"}},
		"CA": {"a certificate is PEM", nf.VIMConnectionRequest{
			Type: "ETSINFV.HELM.V_3", Interface: map[string]any{"endpoint": "https://new:6443"}, Access: map[string]any{"bearer_token": "s3cret-a", "ssl_ca_cert": "x"},
		}, nf.Invalid, []string{"vimConnectionInfo.vim1.interfaceInfo.ssl_ca_cert"}},
		"CloudPassword": {"a cloud needs a password and a project", cloudConnection(map[string]any{"username": "u"}), nf.Invalid, []string{"vimConnectionInfo.vim1.accessInfo.password", "vimConnectionInfo.vim1.accessInfo.project"}},
		"CloudCA": {"its certificates are PEM", cloudConnection(map[string]any{"username": "u", "password": "s3cret-a", "project": "nfv"}, func(info map[string]any) { info["trustedCertificates"] = []any{"x"} }), nf.Invalid,
			[]string{"vimConnectionInfo.vim1.interfaceInfo.ssl_ca_cert"}},
		"CloudWrong": {"and a cloud accepts the credential", cloudConnection(map[string]any{"username": "u", "password": "s3cret-wrong", "project": "nfv"}), nf.Unreachable, nil},
		"Down":       {"the server responds", connection("https://down:6443", token), nf.Unreachable, nil},
		"Wrong":      {"and accepts the credential", connection("https://new:6443", map[string]any{"bearer_token": "s3cret-wrong"}), nf.Unreachable, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := tacker.NewConnections(w).Register(t.Context(), "red", map[string]nf.VIMConnectionRequest{"vim1": tc.given})
			if err == nil || nf.KindOf(err) != tc.kind || strings.Contains(err.Error(), "s3cret") {
				t.Fatalf("%s: %v, want one of kind %s", tc.reason, err, tc.kind)
			}
			var fields []string
			for _, v := range nf.ViolationsOf(err) {
				fields = append(fields, v.Field)
			}
			if diff := cmp.Diff(tc.fields, slices.Compact(fields)); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if regions, err := w.Regions(t.Context()); err != nil || len(regions) > 0 {
				t.Errorf("%s: %d regions are registered: %v", tc.reason, len(regions), err)
			}
		})
	}
}

// TestConnectionsRace registers one VIM while another request does.
func TestConnectionsRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wanted := map[string]nf.VIMConnectionRequest{"vim1": connection("https://new:6443", map[string]any{"bearer_token": "s3cret-a"})}
	var other map[string]nf.VIMConnectionRequest
	w.before = func() {
		var err error
		if other, err = tacker.NewConnections(w).Register(t.Context(), "red", wanted); err != nil {
			t.Error(err)
		}
	}
	got, err := tacker.NewConnections(w).Register(t.Context(), "red", wanted)
	if err != nil || !maps.EqualFunc(got, other, func(a, b nf.VIMConnectionRequest) bool { return a.VIM == b.VIM }) {
		t.Errorf("the requests have %v and %v: %v", got, other, err)
	}
}
