package cli

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// translated translates every CSAR to one object with its flavor and level.
func translated(archive []byte, flavor, level string) (Translation, error) {
	if flavor == "none" {
		return Translation{}, nf.E(nf.Invalid, "translate", "the VNF descriptor", nf.Violations{
			{File: "Definitions/top.yaml", Line: 13, Message: `"VDU1": "flavor" cannot be translated`}, {Field: "flavour_id", Message: `"none" is not a flavor`},
		})
	}
	return Translation{
		Manifests: []byte("kind: Deployment\nmetadata: {name: " + string(archive[:2]) + "-" + flavor + "-" + level + "}\n"),
		Networks:  []nf.Attachment{{Network: "data-net", Workload: "Deployment/web", Interface: "net1"}, {Network: "other", Workload: "Deployment/web"}},
		Warnings:  []string{"Definitions/top.yaml:3: the import is not read"},
	}, nil
}

func TestTranslate(t *testing.T) {
	play(t, map[string]commandCase{
		"package-translate":       {reason: "a folder needs no server", args: []string{"package", "translate", "PKG", "--flavor", "simple", "--level", "large"}},
		"package-translate-json":  {reason: "for programs", args: []string{"package", "translate", "PKG", "-o", "json"}},
		"package-translate-wrong": {reason: "errors as those of lint", args: []string{"package", "translate", "PKG", "--flavor", "none"}},
		"package-translate-none":  {reason: "a file exists", args: []string{"package", "translate", "./nowhere"}},
	})
}
