package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestVirtlet has pods of virtlet stay as they are, and be attached as pods.
func TestVirtlet(t *testing.T) {
	t.Parallel()
	const annotated = `{annotations: {kubernetes.io/target-runtime: virtlet.cloud, VirtletVCPUCount: "2", VirtletDiskDriver: virtio, VirtletCloudInitUserData: "ssh_pwauth: true"}}`
	const spec = `{containers: [{name: fw, image: virtlet.cloud/ubuntu/16.04, tty: true, stdin: true}]}`
	cases := map[string]struct {
		reason string
		object string
		want   string // the workload of the warning; empty: there is none
	}{
		"Pod":        {"a bare pod, as in virtlet's examples", `{apiVersion: v1, kind: Pod, metadata: ` + strings.Replace(annotated, "{", "{name: fw, ", 1) + `, spec: ` + spec + `}`, "Pod/fw"},
		"Deployment": {"a template, as in the founding vFW", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: fw}, spec: {template: {metadata: ` + annotated + `, spec: ` + spec + `}}}`, "Deployment/fw"},
		"Elsewhere":  {"the annotation of the Deployment itself has no meaning", `{apiVersion: apps/v1, kind: Deployment, metadata: ` + strings.Replace(annotated, "{", "{name: fw, ", 1) + `, spec: {template: {spec: ` + spec + `}}}`, ""},
		"Container":  {"another runtime", `{apiVersion: v1, kind: Pod, metadata: {name: fw, annotations: {kubernetes.io/target-runtime: kata}}, spec: ` + spec + `}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, tc.object)
			warnings := p.Virtlet()
			if tc.want == "" != (len(warnings) == 0) || tc.want != "" && !strings.HasPrefix(warnings[0], tc.want+" is a virtual machine of virtlet") {
				t.Errorf("%s: %q", tc.reason, warnings)
			}
			if diff := cmp.Diff(planOf(t, tc.object).Stages[0].Objects[0].Object.Object, p.Stages[0].Objects[0].Object.Object); diff != "" {
				t.Errorf("%s: it has changed (-want +got):\n%s", tc.reason, diff)
			}
			path := []string{"spec", "template"}
			if p.Stages[0].Objects[0].Object.GetKind() == "Pod" {
				path = nil
			}
			attached, err := p.Attach(wantedOf(nf.Attachment{Network: "a"}), connect)
			if err != nil || annotationOf(t, attached, 0, path...) != `[{"interface":"net1","name":"a","namespace":"networks"}]` {
				t.Errorf("%s: it is attached as a pod is: %v", tc.reason, err)
			}
		})
	}
}
