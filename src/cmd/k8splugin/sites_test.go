package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// siteOf is a request for a site of one host, which a script makes a region of
// the sandbox.
func siteOf(h *sitetest.Host, id, script string) map[string]any {
	in := h.Site()
	return map[string]any{
		"site_id": id, "driver": "script", "credential": map[string]any{"password": sitetest.Password}, "secrets": map[string]any{"token": "s3cret-token"},
		"hosts":  []any{map[string]any{"name": "n1", "address": in.Address, "port": in.Port, "user": in.User, "host_key": in.Key, "role": "control_plane"}},
		"script": map[string]any{"content": script, "remove": "#!/bin/sh\ntouch \"$HOME/reset\"\n"},
	}
}

// building is a script that says how the sandbox is reached.
func building(t *testing.T) string {
	t.Helper()
	return buildingOf(t, clustertest.Kubeconfig(t))
}

func buildingOf(t *testing.T, kubeconfig []byte) string {
	t.Helper()
	said, err := json.Marshal(map[string]string{"kubeconfig": string(kubeconfig)})
	if err != nil {
		t.Fatal(err)
	}
	return "#!/bin/sh\necho building with s3cret-token >&2\nbase64 -d <<'END'\n" + base64.StdEncoding.EncodeToString(said) + "\nEND\n"
}

// TestSiteLife builds a site, deploys to its region, and removes both.
func TestSiteLife(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	h := sitetest.New(t)
	made := s.want(http.StatusCreated, s.do("POST", "/v1/sites", siteOf(h, "edge", building(t))))
	if state := made.field(t, "state"); state != "ready" {
		t.Errorf("a site that was built is %s", state)
	}
	region := s.want(http.StatusOK, s.do("GET", "/v1/cloud_regions/edge", nil))
	if !strings.Contains(string(region.body), `"kubernetes_version":"v`) {
		t.Errorf("its region is %s", region.body)
	}
	events := s.want(http.StatusOK, s.do("GET", "/v1/sites/edge/operations/"+made.field(t, "operation_id").(string)+"/events", nil))
	if text := string(events.body); !strings.Contains(text, "building with "+nf.Masked) || strings.Contains(text, "s3cret") || !strings.Contains(text, `"state":"succeeded"`) {
		t.Errorf("what happened is\n%s", text)
	}

	if err := s.parts.catalog.Hold(t.Context(), nf.Holding{Holder: nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}}, Region: "edge"}); err != nil {
		t.Fatal(err)
	}
	refused := s.want(http.StatusConflict, s.do("DELETE", "/v1/sites/edge", nil))
	if !strings.Contains(string(refused.body), "VNF instance vnf-1") {
		t.Errorf("the refusal does not say why: %s", refused.body)
	}
	if err := s.parts.catalog.Release(t.Context(), nf.Holding{Holder: nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}}, Region: "edge"}); err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/sites/edge", nil))
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/edge", nil))
	s.want(http.StatusNotFound, s.do("GET", "/v1/sites/edge", nil))
	if _, err := os.Stat(filepath.Join(h.Home, "reset")); err != nil {
		t.Errorf("the host was not reset: %v", err)
	}
	counted := string(s.want(http.StatusOK, s.do("GET", "/metrics", nil)).body)
	for _, verb := range []string{"site_build", "site_remove"} {
		if want := `k8splugin_operations_total{region="",state="succeeded",verb="` + verb + `"} 1`; !strings.Contains(counted, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for e, err := range s.db.db.List(t.Context(), "site", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"s3cret", sitetest.Password, "building"} {
			if strings.Contains(string(e.Value), secret) {
				t.Errorf("%s is stored in clear", e.Key)
			}
		}
	}
}

// TestSiteFailures: each ends in an error that says which it is, and leaves no
// region.
func TestSiteFailures(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	good := building(t)
	cases := map[string]struct {
		reason string
		edit   func(*sitetest.Host, map[string]any)
		status int
		want   string
	}{
		"WrongPassword": {"a wrong password", func(_ *sitetest.Host, in map[string]any) { in["credential"] = map[string]any{"password": "no"} }, 502, `"reason":"unauthorized"`},
		"Unreachable":   {"a host that is not there", func(h *sitetest.Host, _ map[string]any) { h.Close() }, 502, `"reason":"tcp"`},
		"Script": {"a script that fails", func(_ *sitetest.Host, in map[string]any) {
			in["script"] = map[string]any{"content": "#!/bin/sh\necho no room >&2; exit 3"}
		}, 424, "last output: no room"},
		"Timeout": {"a script that takes too long", func(_ *sitetest.Host, in map[string]any) {
			in["script"], in["timeout"] = map[string]any{"content": "#!/bin/sh\nexec sleep 1000"}, "2s"
		}, 504, "timed out after 2s"},
		"NoCluster": {"a cluster that is not there", func(_ *sitetest.Host, in map[string]any) {
			in["script"] = map[string]any{"content": "#!/bin/sh\necho '{\"server\": \"https://127.0.0.1:1\", \"token\": \"t\"}'"}
		}, 502, `"reason":"tcp"`},
		"NoAnsible": {"a service without playbooks", func(_ *sitetest.Host, in map[string]any) { in["driver"] = "ansible"; delete(in, "script") }, 422, "the driver ansible is not available"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.with(t)
			h := sitetest.New(t)
			id := "bad-" + strings.ToLower(name)
			in := siteOf(h, id, good)
			tc.edit(h, in)
			got := s.want(tc.status, s.do("POST", "/v1/sites", in))
			if !strings.Contains(string(got.body), tc.want) || strings.Contains(string(got.body), "s3cret") {
				t.Errorf("%s: %s", tc.reason, got.body)
			}
			s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/"+id, nil))
		})
	}
}

func TestSiteCancel(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	h := sitetest.New(t)
	accepted := s.want(http.StatusAccepted, s.async("POST", "/v1/sites", siteOf(h, "edge", "#!/bin/sh\necho begun >&2; exec sleep 1000")))
	op := accepted.header.Get("Location")
	s.until(t, op+"/events", "begun")
	s.want(http.StatusAccepted, s.do("POST", op+"/cancel", nil))
	events := s.want(http.StatusOK, s.do("GET", op+"/events", nil))
	if !strings.Contains(string(events.body), `"state":"cancelled"`) {
		t.Errorf("it ended with\n%s", events.body)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/cloud_regions/edge", nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/sites/edge", nil))
}

// TestSiteWaits: an instance that is being changed is let come to an end before
// it goes with its site.
func TestSiteWaits(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/sites", siteOf(sitetest.New(t), "edge", building(t))))
	ns := clustertest.Namespace(t)
	files := web(goodImage)
	files["db.yaml"] = deployment("db", "sandbox.invalid/never-ready:1")
	s.upload("stuck", files)
	made := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "edge", "csar_id": "stuck", "namespace": ns}))
	clustertest.WaitForDeployment(t, ns, "db")
	accepted := s.want(http.StatusAccepted, s.async("DELETE", "/v1/sites/edge?cascade=true", nil))
	op := accepted.header.Get("Location")
	s.until(t, op+"/events", "waiting for operation "+made.text(t, "operation_id")+" on VNF instance")
	clustertest.Unblock(t, ns, "db", goodImage)
	s.want(http.StatusOK, s.do("GET", op+"/events", nil)) // ends with the operation
	ended := s.want(http.StatusOK, s.do("GET", op, nil))
	if ended.text(t, "state") != "succeeded" {
		t.Errorf("the removal is %s", ended.body)
	}
	if first := s.want(http.StatusOK, s.do("GET", "/v1/operations/"+made.text(t, "operation_id"), nil)); first.text(t, "state") != "succeeded" {
		t.Errorf("what was waited for is %s", first.body)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/vnf_instances/"+made.text(t, "vnf_id"), nil))
}

// TestSiteRemovalResumes: a process that dies while an instance goes with its site
// leaves that instance's termination to the next one, as well as the site's
// removal, and these do not stand in each other's way.
func TestSiteRemovalResumes(t *testing.T) {
	t.Parallel()
	data, region := t.TempDir(), clustertest.NewRecorder(t)
	first := serveProgram(t, data, "--drain-timeout", "1s")
	ns := clustertest.Namespace(t)
	first.want(http.StatusCreated, first.do("POST", "/v1/sites", siteOf(sitetest.New(t), "edge", buildingOf(t, region.Kubeconfig()))))
	first.upload("web", web(goodImage))
	made := first.want(http.StatusCreated, first.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "edge", "csar_id": "web", "namespace": ns}))
	first.operation(made.text(t, "operation_id"))
	asked := make(chan struct{})
	begun := sync.OnceFunc(func() { close(asked) })
	heal := region.Fail(func(r clustertest.Request) bool {
		removes := r.Method == http.MethodDelete && strings.Contains(r.Path, "/deployments/")
		if removes {
			begun()
		}
		return removes
	}, clustertest.Status(http.StatusServiceUnavailable))
	op := first.want(http.StatusAccepted, first.async("DELETE", "/v1/sites/edge?cascade=true", nil)).header.Get("Location")
	<-asked
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, first.log)
	}

	second := serveProgram(t, data)
	second.until(t, op+"/events", "waiting for operation ")
	heal()
	second.want(http.StatusOK, second.do("GET", op+"/events", nil)) // ends with the operation
	if ended := second.want(http.StatusOK, second.do("GET", op, nil)); ended.text(t, "state") != "succeeded" {
		t.Errorf("the resumed removal is %s", ended.body)
	}
	second.want(http.StatusNotFound, second.do("GET", "/v1/vnf_instances/"+made.text(t, "vnf_id"), nil))
	second.want(http.StatusNotFound, second.do("GET", "/v1/sites/edge", nil))
}

// until reads a stream until it says a word.
func (s *testService) until(t *testing.T, path, word string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	late := time.AfterFunc(time.Minute, func() { _ = res.Body.Close() })
	defer late.Stop()
	var said strings.Builder
	buffer := make([]byte, 4<<10)
	for !strings.Contains(said.String(), word) {
		n, err := res.Body.Read(buffer)
		said.Write(buffer[:n])
		if err == io.EOF || err != nil {
			t.Fatalf("the stream ended without %q: %v\n%s", word, err, said.String())
		}
	}
}

// TestSiteAccess: to build a site takes what it takes to register its region.
func TestSiteAccess(t *testing.T) {
	t.Parallel()
	w := newRoleWorld(t)
	in := siteOf(sitetest.New(t), "edge", "#!/bin/sh\nexit 1")
	tried := 0
	for _, one := range accesstest.Matrix() {
		if one.Call.Name != "Register" {
			continue
		}
		tried++
		in["cloud_region_id"], in["project"] = one.Region, one.Project
		got := w.as(one.Who, "POST", "/v1/sites", in)
		// The regions are registered, so what is allowed is refused for another reason.
		if outcome := outcomeOf(got); outcome == accesstest.Allowed && (one.Want != accesstest.Allowed || got.status != http.StatusConflict) {
			t.Errorf("%s; it was %d %s", one, got.status, got.body)
		}
	}
	if tried < 10 {
		t.Errorf("only %d of the calls were made", tried)
	}
	list := w.as("nobody", "GET", "/v1/sites", nil)
	if list.status != http.StatusUnauthorized {
		t.Errorf("nobody may list sites, and was answered %d", list.status)
	}
}
