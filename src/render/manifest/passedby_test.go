package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestPassedBy checks packages with files that are too large to be read.
func TestPassedBy(t *testing.T) {
	const metadata, manifest = "resources:\n- manifest: [m.yaml]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	cases := map[string]struct {
		reason   string
		files    render.Files
		want     nf.Violations
		warnings []string
	}{
		"Unnamed": {
			"a file that no entry names may be of any size", render.Files{"metadata.yaml": []byte(metadata), "m.yaml": []byte(manifest), "disk.img": nil},
			nil, []string{"disk.img: is named by no entry of metadata.yaml"},
		},
		"Manifest": {
			"a manifest may not", render.Files{"metadata.yaml": []byte(metadata), "m.yaml": nil},
			nf.Violations{{File: "metadata.yaml", Line: 2, Message: `file "m.yaml" is too large; a manifest has at most 4194304 bytes`}}, nil,
		},
		"Metadata": {
			"nor may the metadata", render.Files{"metadata.yaml": nil},
			nf.Violations{{File: "metadata.yaml", Message: "has more than 262144 bytes"}}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			summary, err := Renderer{}.Check(t.Context(), tc.files)
			if diff := cmp.Diff(tc.want, nf.ViolationsOf(err)); diff != "" || err != nil && nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
			}
			if diff := cmp.Diff(tc.warnings, summary.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
