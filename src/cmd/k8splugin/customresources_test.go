package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCustomResourcesBecomeReady has custom resources with a rule of the package, with
// one of the operator, and with none. The test acts as their operator, which needs
// all of them at the same time.
func TestCustomResourcesBecomeReady(t *testing.T) {
	t.Parallel()
	ns := clustertest.Namespace(t)
	group := ns + ".example.org" // definitions are cluster-wide: one for each run
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("- group: "+group+"\n  kind: Gadget\n  current: object.?status.?ready.orValue(false)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Gadget", "Mute", "Widget"} {
		clustertest.Define(t, group, kind)
	}
	s := startService(t, func(cfg *Config) { cfg.ReadinessRules = rules })
	object := func(kind string) string {
		return "apiVersion: " + group + "/v1\nkind: " + kind + "\nmetadata: {name: one}\nspec: {size: $size}\n"
	}
	s.upload("custom", map[string]string{
		"metadata.yaml": strings.ReplaceAll(`variables: {size: {default: 1}}
readiness:
- group: GROUP
  kind: Widget
  current: seen(object) && object.status.phase == "Up"
  failed: seen(object) && object.status.phase == "Broken"
resources: {gadget: [g.yaml], mute: [m.yaml], widget: [w.yaml]}
`, "GROUP", group),
		"g.yaml": object("Gadget"), "m.yaml": object("Mute"), "w.yaml": object("Widget"),
	})
	up := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "custom", "namespace": ns}))
	id := up.text(t, "vnf_id")
	widget := nf.Ref{Group: group, Kind: "Widget", Namespace: ns, Name: "one"}
	gadget := nf.Ref{Group: group, Kind: "Gadget", Namespace: ns, Name: "one"}

	clustertest.SetStatus(t, widget, map[string]any{"phase": "Starting", "observedGeneration": 1})
	clustertest.SetStatus(t, gadget, map[string]any{"phase": "Waiting for a widget"})
	const silent = "Current: it exists; nothing else is known about its readiness, because it has no conditions and its kind has no readiness rule"
	want := map[string]string{"Gadget": "InProgress: its phase is Waiting for a widget", "Widget": "InProgress: its phase is Starting", "Mute": silent}
	until(t, "all objects exist", func() bool { return strings.HasPrefix(s.objectsOf(id)["Mute"], "Current") })
	if diff := cmp.Diff(want, s.objectsOf(id)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if op := s.do("GET", "/v1/operations/"+up.text(t, "operation_id"), nil); op.text(t, "state") != "running" {
		t.Errorf("no operator has done anything: %s", op.body)
	}

	clustertest.SetStatus(t, widget, map[string]any{"phase": "Up"})
	clustertest.SetStatus(t, gadget, map[string]any{"ready": true})
	if op := s.operation(up.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
		t.Errorf("the objects are ready: %s", op.body)
	}
	if diff := cmp.Diff(map[string]string{"Gadget": "Current: ", "Widget": "Current: ", "Mute": silent}, s.objectsOf(id)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	clustertest.SetStatus(t, widget, map[string]any{"phase": "Broken", "observedGeneration": 2})
	changed := s.want(http.StatusAccepted, s.async("PATCH", "/v1/vnf_instances/"+id, map[string]any{"parameters": map[string]any{"size": 2}, "on_failure": "keep"}))
	op := s.operation(changed.text(t, "operation_id"))
	if message := op.text(t, "failure.message"); op.text(t, "state") != "failed" || !strings.Contains(message, "its phase is Broken") {
		t.Errorf("a failure that is final ends the stage: %s", op.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
}

// objectsOf returns the status and the message of each object of an instance, by
// kind.
func (s *testService) objectsOf(instance string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, o := range s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+instance, nil)).field(s.t, "objects").([]any) {
		fields, _ := o.(map[string]any)
		kind, _ := fields["kind"].(string)
		status, _ := fields["status"].(string)
		message, _ := fields["message"].(string)
		out[kind] = status + ": " + message
	}
	return out
}
