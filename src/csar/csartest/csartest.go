// Package csartest makes CSARs for tests: a VNF descriptor in three files as SOL001 has
// it, a TOSCA.meta, and a manifest with the hashes of all files.
//
// It does not share code with package csar, so that a mistake there is not repeated here.
package csartest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VNFD is the id of the descriptor of every CSAR.
const VNFD = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"

const meta = `TOSCA-Meta-File-Version: 1.0
Created-by: csartest
CSAR-Version: 1.1
Entry-Definitions: Definitions/top.yaml
ETSI-Entry-Manifest: sample.mf
`

const top = `tosca_definitions_version: tosca_simple_yaml_1_2
imports:
  - types.yaml
  - file: df_simple.yaml
topology_template:
  inputs:
    selected_flavour: {type: string}
  node_templates:
    VNF:
      type: example.VNF
      properties:
        flavour_id: {get_input: selected_flavour}
        descriptor_id: ` + VNFD + `
        provider: Example
        product_name: Sample VNF
        software_version: '1.0'
        descriptor_version: '2.1'
        vnfm_info: [Tacker]
`

const types = `tosca_definitions_version: tosca_simple_yaml_1_2
node_types:
  example.VNF:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      flavour_id: {type: string, default: simple}
`

const flavor = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: example.VNF
    properties: {flavour_id: simple}
`

// Files returns the files of a CSAR whose artifacts are the given files, path → content.
// The manifest lists them in the order of their paths.
func Files(artifacts map[string]string) map[string]string {
	out := map[string]string{
		"TOSCA-Metadata/TOSCA.meta": meta, "Definitions/top.yaml": top, "Definitions/types.yaml": types, "Definitions/df_simple.yaml": flavor,
	}
	maps.Copy(out, artifacts)
	out["sample.mf"] = Manifest(out)
	return out
}

// Manifest returns a manifest that lists files with their SHA-256.
func Manifest(files map[string]string) string {
	var b strings.Builder
	b.WriteString("metadata:\n  vnf_product_name: Sample VNF\n  vnf_provider_id: Example\n  vnf_package_version: '1.0'\n  vnf_release_date_time: 2026-01-01T10:00:00Z\n\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "Source: %s\nAlgorithm: SHA-256\nHash: %x\n\n", name, sha256.Sum256([]byte(files[name])))
	}
	return b.String()
}

// Single returns the files of a CSAR whose descriptor is one file.
func Single(artifacts map[string]string) map[string]string {
	out := Files(artifacts)
	delete(out, "Definitions/types.yaml")
	delete(out, "Definitions/df_simple.yaml")
	delete(out, "sample.mf")
	out["Definitions/top.yaml"] = strings.Replace(top, "imports:\n  - types.yaml\n  - file: df_simple.yaml\n", "", 1)
	out["sample.mf"] = Manifest(out)
	return out
}
