package declared_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/declared"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// from returns a function that reads files by name.
func from(files map[string]string) declared.ReadFile {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return func(name string) ([]byte, error) { return fs.ReadFile(m, name) }
}

const all = `# a comment
kind: region
cloud_region_id: east
kubeconfig_file: east.kubeconfig
labels: {site: east}
---
---
kind: package
csar_id: firewall
path: ../packages/firewall
---
kind: instance
vnf_instance_name: fw-1
cloud_region_id: east
namespace: edge
csar_id: firewall
parameter_files: [common.yaml, fw-1.yaml]
parameters: {serial: 12345678901234567890}
---
kind: service
service_id: vpn
members: [{name: fw, csar_id: firewall, cloud_region_id: east}]
---
kind: service
service_id: described
nsd_file: vpn.nsd
members: [{name: fw, cloud_region_id: east}]
`

func TestRead(t *testing.T) {
	read := from(map[string]string{
		"lab/all.yaml": all, "lab/vpn.nsd": "tosca", "lab/common.yaml": "replicas: 1\nlevel: 2\n", "lab/fw-1.yaml": "replicas: 3\nserial: 1\n",
	})
	got, err := declared.Read(read, "lab/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Regions) != 1 || len(got.Packages) != 1 || len(got.Instances) != 1 || len(got.Services) != 2 {
		t.Fatalf("got %+v", got)
	}
	region, pkg, in := got.Regions[0], got.Packages[0], got.Instances[0]
	if region.ID != "east" || region.Labels["site"] != "east" || declared.Beside(region.Origin, region.KubeconfigFile) != "lab/east.kubeconfig" {
		t.Errorf("the region is %+v", region)
	}
	if pkg.ID != "firewall" || declared.Beside(pkg.Origin, pkg.Path) != "packages/firewall" || pkg.Origin.String() != "lab/all.yaml:8" {
		t.Errorf("the package is %+v", pkg)
	}
	if in.Name != "fw-1" || in.InstanceTarget.Region != "east" || in.InstanceEdit.Package != "firewall" || in.Origin.Line != 12 {
		t.Errorf("the instance is %+v", in)
	}
	if one := got.Services[0]; one.ID != "vpn" || one.Members[0].Package != "firewall" || one.Origin.Line != 20 || got.Services[1].NSD != "tosca" {
		t.Errorf("the service is %+v", one)
	}
	want := map[string]string{"replicas": "3", "level": "2", "serial": "12345678901234567890"}
	parameters := map[string]string{}
	for name, value := range in.Parameters {
		parameters[name] = fmt.Sprint(value)
	}
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Errorf("the parameters (-want +got):\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	region := "kind: region\ncloud_region_id: a\nkubeconfig_file: k\n"
	placed := "kind: instance\nvnf_instance_name: a\ncsar_id: p\nplacement:\n  prefer: most-room\n"
	instance := "kind: instance\nvnf_instance_name: a\ncloud_region_id: r\ncsar_id: p\n"
	cases := map[string]struct{ reason, text, want string }{
		"Syntax":       {"the line is named", "kind: region\n\tid: a\n", "all.yaml:2: is not YAML: found a tab character that violates indentation"},
		"Kind":         {"there are four kinds", "\nkind: Deployment\n", "all.yaml:2: kind: must be region, package, instance or service"},
		"NoKind":       {"a kind is needed", "cloud_region_id: a\n", "all.yaml:1: kind: must be region, package, instance or service"},
		"List":         {"a document is a map", "- kind: region\n", "all.yaml:1: must be a map of names to values"},
		"Twice":        {"a name twice in one map", "kind: region\nkind: region\n", "all.yaml:1: must be a map of names to values"},
		"Misspelled":   {"a field that is misspelled is not ignored", instance + "namespce: x\n", "all.yaml:5: namespce: is not a known field"},
		"Deep":         {"nor one inside", "kind: region\ncloud_region_id: a\naccess: {server: 'https://a', tokn: x}\n", "all.yaml:3: access.tokn: is not a known field"},
		"Type":         {"a value of another type", instance + "labels:\n  a: [1]\n", "all.yaml:5: labels: a string is needed, not an array"},
		"NoMembers":    {"a network service has members", "kind: service\nservice_id: a\n", "all.yaml:1: members: is missing"},
		"Member":       {"a member is an instance", "kind: service\nservice_id: a\nmembers:\n- name: b\n", "all.yaml:1: members[0].csar_id: is missing; all.yaml:1: members[0].cloud_region_id: give exactly one of cloud_region_id and placement"},
		"NSDTwice":     {"a descriptor is given once", "kind: service\nservice_id: a\nnsd: b\nnsd_file: c\n", "all.yaml:4: nsd_file: give at most one of nsd and nsd_file"},
		"NSDFile":      {"and exists", "kind: service\nservice_id: a\nnsd_file: c\n", "all.yaml:3: nsd_file: cannot read c: open c: file does not exist"},
		"ServiceTwice": {"it is declared once", "kind: service\nservice_id: a\nmembers: [{name: b, csar_id: c, cloud_region_id: d}]\n---\nkind: service\nservice_id: a\nmembers: [{name: b, csar_id: c, cloud_region_id: d}]\n", "all.yaml:5: is declared at all.yaml:1, too"},
		"NoName":       {"an instance is found by its name", "kind: instance\ncloud_region_id: r\ncsar_id: p\n", "all.yaml:1: vnf_instance_name: is missing"},
		"NoRegion":     {"an instance has a region, or the server chooses one", "kind: instance\nvnf_instance_name: a\ncsar_id: p\n", "all.yaml:1: cloud_region_id: give exactly one of cloud_region_id and placement"},
		"TwoRegions":   {"not both", instance + "placement: {}\n", "all.yaml:3: cloud_region_id: give exactly one of cloud_region_id and placement"},
		"Placement":    {"a need that is misspelled is not ignored", placed + "  selctor: site=a\n", "all.yaml:6: placement.selctor: is not a known field"},
		"Placed":       {"an instance without a region can be in any", placed + "---\n" + instance + "namespace: edge\n", "all.yaml:7: can be the same instance as that of all.yaml:1, because a placement decides on the region"},
		"PlacedTwice":  {"two of a name", placed + "---\n" + placed, "all.yaml:7: is declared at all.yaml:1, too"},
		"NoPath":       {"a package has content", "kind: package\ncsar_id: p\n", "all.yaml:1: path: is missing"},
		"NoAccess":     {"a region has an access", "kind: region\ncloud_region_id: a\n", "all.yaml:1: access: give exactly one of access, kubeconfig and kubeconfig_file"},
		"TwoAccesses":  {"one", region + "kubeconfig: eA==\n", "all.yaml:1: access: give exactly one of access, kubeconfig and kubeconfig_file"},
		"Context":      {"a context is that of a file", "kind: region\ncloud_region_id: a\nkubeconfig: eA==\nkube_context: x\n", "all.yaml:4: kube_context: needs kubeconfig_file"},
		"Duplicate":    {"two documents must not compete", region + "---\n" + region, "all.yaml:5: is declared at all.yaml:1, too"},
		"NoParameters": {"a file that is missing", instance + "parameter_files: [none.yaml]\n", "all.yaml:5: parameter_files: cannot read none.yaml: open none.yaml: file does not exist"},
		"AllAtOnce":    {"everything that is wrong", "kind: x\n---\nkind: y\n", "all.yaml:1: kind: must be region, package, instance or service; all.yaml:3: kind: must be region, package, instance or service"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := declared.Read(from(map[string]string{"all.yaml": c.text}), "all.yaml")
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: got %v, want %s", c.reason, err, c.want)
			}
		})
	}
}

// FuzzRead reads any text. What is accepted has names, and violations have lines.
func FuzzRead(f *testing.F) {
	f.Add(all)
	f.Add("kind: region\ncloud_region_id: a\naccess: {server: 'https://a', tokn: x}\n")
	f.Add("kind: instance\nvnf_instance_name: a\ncsar_id: p\nplacement: {selector: a=b, room: {pods: 2}}\n")
	f.Add("kind: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := declared.Read(from(map[string]string{"all.yaml": text, "common.yaml": "a: 1", "fw-1.yaml": "- 1"}), "all.yaml")
		for _, v := range nf.ViolationsOf(err) {
			if v.File != "all.yaml" || v.Line < 1 || v.Message == "" {
				t.Errorf("a violation has no place: %+v", v)
			}
		}
		for _, in := range got.Instances {
			if in.Name == "" || (in.InstanceTarget.Region == "") == (in.Placement == nil) || in.InstanceEdit.Package == "" || in.Origin.Line > 1+strings.Count(text, "\n") {
				t.Errorf("an instance is incomplete: %+v", in)
			}
		}
	})
}
