package nf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		labels map[string]string
		want   nf.Subject
	}{
		"Instance":  {"the label of instances has the id alone", map[string]string{nf.OwnerLabel: "network.x"}, nf.Subject{Kind: nf.InstanceSubject, ID: "network.x"}},
		"Network":   {"an id may have dots", map[string]string{nf.SubjectLabel: "network.a.b"}, nf.Subject{Kind: "network", ID: "a.b"}},
		"Both":      {"the label of instances decides", map[string]string{nf.SubjectLabel: "network.x", nf.OwnerLabel: "x"}, nf.Subject{Kind: nf.InstanceSubject, ID: "x"}},
		"Neither":   {"other labels name no owner", map[string]string{"a": "b.c"}, nf.Subject{}},
		"Malformed": {"a kind is not an owner", map[string]string{nf.SubjectLabel: "network"}, nf.Subject{Kind: "network"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nf.OwnerOf(tc.labels)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
