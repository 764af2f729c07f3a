package nf_test

import (
	"strings"
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

func TestCheckOwner(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		owner  nf.Subject
		want   string // the message; empty: none
	}{
		"Instance":      {"the label of an instance is its id", nf.Subject{Kind: nf.InstanceSubject, ID: strings.Repeat("x", 63)}, ""},
		"LongInstance":  {"a label has at most 63 characters", nf.Subject{Kind: nf.InstanceSubject, ID: strings.Repeat("x", 64)}, "is longer than 63 characters"},
		"Network":       {"another label contains the kind and a dot", nf.Subject{Kind: "network", ID: strings.Repeat("x", 55)}, ""},
		"LongNetwork":   {"which leaves fewer for the id", nf.Subject{Kind: "network", ID: strings.Repeat("x", 56)}, "is longer than 55 characters"},
		"LongKind":      {"a kind with an underscore is valid in a label", nf.Subject{Kind: "vnf_thing", ID: "A.b_c-1"}, ""},
		"Slash":         {"a label value contains no slash", nf.Subject{Kind: "network", ID: "a/b"}, "is not 1 to 128 letters"},
		"End":           {"and ends with a letter or a digit", nf.Subject{Kind: "network", ID: "a-"}, "is not 1 to 128 letters"},
		"WithoutAnID":   {"without an id it is no owner", nf.Subject{Kind: "network"}, "is missing"},
		"OtherAlphabet": {"letters are ASCII letters", nf.Subject{Kind: "network", ID: "ä"}, "is not 1 to 128 letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tc.owner.CheckOwner("id")
			if tc.want == "" && v != nil || tc.want != "" && (len(v) != 1 || v[0].Field != "id" || !strings.Contains(v[0].Message, tc.want)) {
				t.Errorf("%s: %v, want %q", tc.reason, v, tc.want)
			}
		})
	}
}

// TestLongInstanceID checks that an id that no label can hold is refused with the
// request, before an object is applied.
func TestLongInstanceID(t *testing.T) {
	t.Parallel()
	req := nf.InstantiateRequest{ID: strings.Repeat("x", 64), Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "p"}}
	v := nf.ViolationsOf(req.Validate())
	if len(v) != 1 || v[0].Field != "vnf_id" {
		t.Errorf("the violations are %v, want one of vnf_id", v)
	}
	req.ID = req.ID[1:]
	if err := req.Validate(); err != nil {
		t.Errorf("63 characters: %v", err)
	}
}
