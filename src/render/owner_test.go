package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

func TestOwn(t *testing.T) {
	cases := map[string]struct {
		reason, in, want string
	}{
		"plain": {
			"every object has the label, beside its own",
			`{apiVersion: v1, kind: Service, metadata: {name: s, labels: {a: b}}, spec: {template: {x: y}}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s, labels: {a: b, OWNER: me}}, spec: {template: {x: y}}}`,
		},
		"replaced": {
			"another owner's label is replaced",
			`{apiVersion: v1, kind: Service, metadata: {labels: {OWNER: you}}}`,
			`{apiVersion: v1, kind: Service, metadata: {labels: {OWNER: me}}}`,
		},
		"deployment": {
			"pods have it, selectors have not, unknown fields stay",
			`{apiVersion: apps/v9, kind: Deployment, metadata: {name: d}, spec: {new: {field: 1.5}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, x: 1}, spec: {y: [null]}}}}`,
			`{apiVersion: apps/v9, kind: Deployment, metadata: {name: d, labels: {OWNER: me}}, spec: {new: {field: 1.5}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, OWNER: me}, x: 1}, spec: {y: [null]}}}}`,
		},
		"job": {
			"a template without metadata gets some",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: null}, spec: {template: {spec: {}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {OWNER: me}}, spec: {template: {metadata: {labels: {OWNER: me}}, spec: {}}}}`,
		},
		"cronjob": {
			"jobs and their pods have it",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {template: {metadata: {name: x}}}}}}`,
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, labels: {OWNER: me}}, spec: {jobTemplate: {metadata: {labels: {OWNER: me}}, spec: {template: {metadata: {name: x, labels: {OWNER: me}}}}}}}`,
		},
		"podtemplate": {
			"its template is at the top",
			`{apiVersion: v1, kind: PodTemplate, metadata: {name: p}, template: {}}`,
			`{apiVersion: v1, kind: PodTemplate, metadata: {name: p, labels: {OWNER: me}}, template: {metadata: {labels: {OWNER: me}}}}`,
		},
		"no template": {
			"what is missing or malformed stays so",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, labels: none}, spec: {template: [1]}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, labels: none}, spec: {template: [1]}}`,
		},
		"other group": {
			"a kind is known by its group too",
			`{apiVersion: example.com/v1, kind: Deployment, metadata: {name: d}, spec: {template: {}}}`,
			`{apiVersion: example.com/v1, kind: Deployment, metadata: {name: d, labels: {OWNER: me}}, spec: {template: {}}}`,
		},
	}
	for _, kind := range []string{"apps/v1, kind: DaemonSet", "apps/v1, kind: ReplicaSet", "apps/v1, kind: StatefulSet", "v1, kind: ReplicationController"} {
		cases[kind] = struct{ reason, in, want string }{
			"every kind that makes pods",
			`{apiVersion: ` + kind + `, metadata: {}, spec: {template: {}}}`,
			`{apiVersion: ` + kind + `, metadata: {labels: {OWNER: me}}, spec: {template: {metadata: {labels: {OWNER: me}}}}}`,
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fromYAML(t, tc.in)
			render.Own(got, nf.Subject{Kind: nf.InstanceSubject, ID: "me"}, nil)
			if diff := cmp.Diff(fromYAML(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// fromYAML reads an object in which OWNER stands for the owner label.
func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "OWNER", nf.OwnerLabel)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
