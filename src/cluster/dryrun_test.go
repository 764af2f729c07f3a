package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDryRun has the API server find what no schema says.
func TestDryRun(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	cron := func(schedule string) string {
		return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: "` + schedule + `",
			jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`
	}
	fixed := func(value string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: "` + value + `"}}`
	}
	mustApply(t, c, vnf, objects(t, vnf, ns, fixed("1"))...)
	service := func(name, spec string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: ` + name + `}, spec: {` + spec + `}}`
	}
	mustApply(t, c, vnf, objects(t, vnf, ns, service("taken", "type: NodePort, ports: [{port: 80}]"))...)
	taken := get(t, c, nf.Ref{Version: "v1", Kind: "Service", Namespace: ns, Name: "taken"})
	ports, _, _ := unstructured.NestedSlice(taken.Object, "spec", "ports")
	port := fmt.Sprint(ports[0].(map[string]any)["nodePort"])
	cases := map[string]struct {
		reason    string
		namespace string
		objects   string
		want      []string
		unchecked []string
	}{
		"fine": {reason: "the API server takes them", objects: cron("* * * * *") + "\n---\n" + fixed("1")},
		"wrong": {
			reason: "the fields of all objects are named", objects: cron("sometimes") + "\n---\n" + strings.Replace(cron("never"), "tick", "tock", 1),
			want: []string{"CronJob tick: spec.schedule", "CronJob tock: spec.schedule"},
		},
		"immutable": {reason: "applying it has a reason of its own, and the package may allow to make it again", objects: fixed("2")},
		"node port": {
			reason: "the port may be free by the time, as it moves to another Service", objects: service("heir", "type: NodePort, ports: [{port: 80, nodePort: "+port+"}]"),
			unchecked: []string{"Service heir"},
		},
		"wrong Service": {
			reason: "what has nothing to do with other objects is wrong for ever", objects: service("odd", "type: ExternalName"),
			want: []string{"Service odd: spec.externalName"},
		},
		"no namespace": {
			reason: "nothing can be sent", namespace: ns + "-not", objects: cron("sometimes"), unchecked: []string{"CronJob tick"},
		},
		"no kind": {
			reason: "the definition is not there yet", objects: definition(ns+".test", "Namespaced") + "spec: 5\n", unchecked: []string{"Gizmo g"},
		},
		"refused": {
			reason:  "a lack of rights may be mended before it is applied",
			objects: `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: none, containers: [{name: c, image: i}]}}`, unchecked: []string{"Pod a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.namespace == "" {
				tc.namespace = ns
			}
			us := objects(t, vnf, "", tc.objects)
			if _, err := c.Preflight(t.Context(), instance(vnf), inside(tc.namespace), us); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			unchecked, err := c.DryRun(t.Context(), instance(vnf), us, nil)
			var wrong, rest []string
			for _, v := range nf.ViolationsOf(err) {
				wrong = append(wrong, fieldIn(v))
			}
			for _, ref := range unchecked {
				rest = append(rest, ref.Kind+" "+ref.Name)
			}
			if tc.want != nil {
				wantKind(t, err, nf.Invalid)
			} else if err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			diff(t, tc.reason, tc.want, wrong)
			diff(t, tc.reason, tc.unchecked, rest)
			for _, u := range us {
				if u.GetName() != "fixed" && u.GetKind() != "Gizmo" && get(t, c, nf.RefOf(u)) != nil {
					t.Errorf("%s: %s was made", tc.reason, u.GetName())
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.DryRun(ctx, instance(vnf), objects(t, vnf, ns, cron("* * * * *")), nil); nf.KindOf(err) != nf.Cancelled {
		t.Errorf("a dry run whose context has ended: %v, want Cancelled", err)
	}
}
