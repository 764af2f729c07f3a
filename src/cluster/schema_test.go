package cluster

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// web is a Deployment with more in its spec.
func web(more string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + more + ` selector: {matchLabels: {a: b}},
		template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
}

// fieldsOf are violations, one to a line, with the objects that they are about.
func fieldsOf(err error) []string {
	var out []string
	for _, v := range nf.ViolationsOf(err) {
		v.Object.Namespace = ""
		out = append(out, v.String())
	}
	return out
}

// TestPreflightComparesWithSchemas has objects that do not fit the schemas of a
// real API server, before and after an instance of them is live.
func TestPreflightComparesWithSchemas(t *testing.T) {
	const vnf = "vnf-1"
	good := configMap(t, vnf, "", "good", "1")
	cases := map[string]struct {
		reason  string
		objects string
		want    []string
	}{
		"fine": {"all fit", web("replicas: 0,"), nil},
		"unknown field": {
			"a typo", web("replica: 1,"),
			[]string{`Deployment web: spec.replica: unknown field "replica" (did you mean "replicas"?)`},
		},
		"negative": {"there are no negative pods", web("replicas: -1,"), []string{"Deployment web: spec.replicas: must be at least 0, got -1"}},
		"name": {
			"capitals", `{apiVersion: v1, kind: ConfigMap, metadata: {name: Web}}`,
			[]string{`ConfigMap Web: metadata.name: must be lower-case letters, digits, "-" and ".", start and end with a letter or digit, and have at most 253 characters, got "Web"`},
		},
		"several": {
			"every object is looked at", web("replicas: -1,") + "\n---\n" + `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`,
			[]string{"Deployment web: spec.replicas: must be at least 0, got -1", "ConfigMap a: data[a]: must be a string, got 1"},
		},
		"secret": {
			"its values are not shown", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: hush!}}`,
			[]string{"Secret a: data[a]: must be base64"},
		},
		"own definition": {
			"the definition comes with the object",
			strings.Replace(definition("fit.test", "Namespaced"), "x-kubernetes-preserve-unknown-fields: true",
				"properties: {spec: {type: object, properties: {level: {type: integer, minimum: 1}}}}", 1) + "spec: {level: 0, leve: 1}\n",
			[]string{`Gizmo g: spec.leve: unknown field "leve" (did you mean "level"?)`, "Gizmo g: spec.level: must be at least 1, got 0"},
		},
	}
	for _, live := range []bool{false, true} {
		c, r, ns := recorded(t)
		if live {
			mustApply(t, c, vnf, objects(t, vnf, ns, web("replicas: 0,"))...)
		}
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				r.Reset()
				_, err := c.Preflight(t.Context(), instance(vnf), inside(ns), append(objects(t, vnf, "", tc.objects), good.DeepCopy()))
				diff(t, tc.reason, tc.want, fieldsOf(err))
				if tc.want != nil {
					wantKind(t, err, nf.Invalid)
				} else if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				for _, req := range r.Requests() {
					if req.Method != http.MethodGet {
						t.Errorf("%s: %s, but nothing may be touched", tc.reason, req)
					}
				}
			})
		}
	}
}

// TestPreflightLeavesAlone has objects that would not fit, but are not applied.
func TestPreflightLeavesAlone(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	wrong := objects(t, vnf, "", web("replicas: -1,"))
	selector := nf.AdoptionSelector{Labels: map[string]string{"app": "x"}}
	if _, err := c.PreflightAdopt(t.Context(), instance(vnf), inside(ns), selector, wrong); err != nil {
		t.Errorf("what is adopted is not written: %v", err)
	}
	if _, err := c.Preflight(t.Context(), instance(vnf), inside(ns), []*unstructured.Unstructured{unlabelled(wrong[0])}); err != nil {
		t.Errorf("an object without an owner is not checked: %v", err)
	}
}

// TestPreflightWithoutSchemas has a region that does not give its schemas: the
// objects pass, and a line of the log says why.
func TestPreflightWithoutSchemas(t *testing.T) {
	answer := func(text string) clustertest.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, text) }
	}
	cases := map[string]struct {
		reason string
		spoil  clustertest.Fault
	}{
		"absent":      {"an API server before 1.24 has none", clustertest.Status(http.StatusNotFound)},
		"forbidden":   {"the credential may not read them", clustertest.Status(http.StatusForbidden)},
		"broken":      {"an aggregated API server is down", clustertest.Status(http.StatusInternalServerError)},
		"garbage":     {"the answer is no JSON", answer("<html>")},
		"other JSON":  {"the answer is something else", answer(`[1, 2]`)},
		"large":       {"the answer is larger than is read", answer(`{"paths": {"` + strings.Repeat("x", 17<<20) + `"}}`)},
		"many fields": {"the answer takes more memory than it may", answer("[" + strings.Repeat("{},", 1<<18) + "{}]")},
	}
	for name, tc := range cases {
		for what, prefix := range map[string]string{"index": "/openapi/v3", "document": "/openapi/v3/"} {
			t.Run(name+" "+what, func(t *testing.T) {
				var log bytes.Buffer
				r := clustertest.NewRecorder(t)
				p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
				c, err := p.Open("east", accessTo(t, r.Kubeconfig()))
				if err != nil {
					t.Fatal(err)
				}
				defer r.Fail(func(req clustertest.Request) bool { return strings.HasPrefix(req.Path, prefix) }, tc.spoil)()
				if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside("default"), objects(t, "vnf-1", "", web("replicas: -1,"))); err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "Deployment") {
					t.Errorf("%s: the log says %q", tc.reason, log.String())
				}
			})
		}
	}
}

// TestSchemasAreShared counts what is read: only documents of the groups that the
// objects need, and each version of them once for all regions.
func TestSchemasAreShared(t *testing.T) {
	p, r := local(t), clustertest.NewRecorder(t)
	us := func() []*unstructured.Unstructured { return objects(t, "vnf-1", "", web("")+"\n---\n"+web("")) }
	var got []string
	for _, region := range []string{"east", "east", "west"} {
		c, err := p.Open(region, accessTo(t, r.Kubeconfig()))
		if err != nil {
			t.Fatal(err)
		}
		r.Reset()
		if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside("default"), us()); err != nil {
			t.Fatal(err)
		}
		for _, req := range r.Requests() {
			if strings.HasPrefix(req.Path, "/openapi") {
				got = append(got, region+" "+req.Path)
			}
		}
	}
	diff(t, "the index once per region in a minute, as it tells what has changed; a document once", []string{
		"east /openapi/v3", "east /openapi/v3/apis/apps/v1", "west /openapi/v3",
	}, got)
}
