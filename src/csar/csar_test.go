package csar_test

import (
	"crypto/sha512"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// held returns files as package render holds them.
func held(files map[string]string) map[string][]byte {
	out := make(map[string][]byte, len(files))
	for name, content := range files {
		out[name] = []byte(content)
	}
	return out
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestRead(t *testing.T) {
	t.Parallel()
	files := csartest.Files(map[string]string{"Files/kubernetes/a.yaml": configMap})
	got, err := csar.Read(held(files))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, a := range got.VNFD.Artifacts {
		if a.Algorithm != "SHA-256" || len(a.Hash) != 64 {
			t.Errorf("artifact %+v lacks its hash", a)
		}
		paths = append(paths, a.Path)
	}
	got.VNFD.Artifacts = nil
	if diff := cmp.Diff(nf.VNFD{
		ID: csartest.VNFD, Provider: "Example", Product: "Sample VNF", SoftwareVersion: "1.0", Version: "2.1", Managers: []string{"Tacker"}, Flavors: []string{"simple"},
		Files: []string{"Definitions/top.yaml", "Definitions/types.yaml", "Definitions/df_simple.yaml"}, Manifest: "sample.mf",
	}, got.VNFD); diff != "" {
		t.Errorf("the descriptor (-want +got):\n%s", diff)
	}
	want := []string{"Definitions/df_simple.yaml", "Definitions/top.yaml", "Definitions/types.yaml", "Files/kubernetes/a.yaml", "TOSCA-Metadata/TOSCA.meta"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("the artifacts in the order of the manifest (-want +got):\n%s", diff)
	}
	if err := got.Verify(t.Context(), held(files), nil); err != nil {
		t.Error(err)
	}
}

func TestReadForms(t *testing.T) {
	t.Parallel()
	sum := fmt.Sprintf("%x", sha512.Sum512([]byte(configMap)))
	cases := map[string]struct {
		reason string
		edit   func(files map[string]string)
		want   func(c csar.CSAR) bool
	}{
		"MetaLists": {
			"without a manifest, TOSCA.meta lists the artifacts", func(f map[string]string) {
				delete(f, "sample.mf")
				f[csar.MetaFile] = "TOSCA-Meta-File-Version: 1.0\r\nCSAR-Version: 1.1\r\nCreated-By: x\r\nEntry-Definitions: Definitions/top.yaml\r\n\r\n" +
					"Name: Files/a.yaml\r\nContent-Type: application/yaml\r\nAlgorithm: sha512\r\nHash: " + strings.ToUpper(sum) + "\r\n"
			},
			func(c csar.CSAR) bool {
				return cmp.Equal(c.VNFD.Artifacts, []nf.PackageArtifact{{Path: "Files/a.yaml", Algorithm: "SHA-512", Hash: sum, MediaType: "application/yaml"}})
			},
		},
		"ManifestByName": {
			"TOSCA.meta need not name a manifest of the descriptor's name", func(f map[string]string) {
				f[csar.MetaFile] = strings.Replace(f[csar.MetaFile], "ETSI-Entry-Manifest: sample.mf\n", "", 1)
				f["top.mf"] = "Source: Files/a.yaml\n"
			},
			func(c csar.CSAR) bool {
				return c.VNFD.Manifest == "top.mf" && cmp.Equal(c.VNFD.Artifacts, []nf.PackageArtifact{{Path: "Files/a.yaml"}})
			},
		},
		"AtTop": {
			"a CSAR without TOSCA.meta has one descriptor at the top", func(f map[string]string) {
				f["sample.yaml"] = csartest.Single(nil)["Definitions/top.yaml"]
				delete(f, csar.MetaFile)
				f["sample.mf"] = "Source: Files/a.yaml\n"
			},
			func(c csar.CSAR) bool { return c.VNFD.Manifest == "sample.mf" && c.VNFD.Files[0] == "sample.yaml" },
		},
		"URL": {
			"an artifact may be elsewhere", func(f map[string]string) { f["sample.mf"] = "Source: https://example.org/a.yaml\n" },
			func(c csar.CSAR) bool { return c.VNFD.Artifacts[0].Path == "https://example.org/a.yaml" },
		},
		"DefaultOfType": {
			"a property may be the default of the node type", func(f map[string]string) {
				f["Definitions/top.yaml"] = strings.Replace(f["Definitions/top.yaml"], "        provider: Example\n", "", 1)
				f["Definitions/types.yaml"] += "      provider: {type: string, default: Vendor}\n"
			},
			func(c csar.CSAR) bool { return c.VNFD.Provider == "Vendor" },
		},
		"Input": {
			"or the default of an input", func(f map[string]string) {
				f["Definitions/top.yaml"] = strings.NewReplacer("provider: Example", "provider: {get_input: who}", "  inputs:\n", "  inputs:\n    who: {type: string, default: Asked}\n").Replace(f["Definitions/top.yaml"])
			},
			func(c csar.CSAR) bool { return c.VNFD.Provider == "Asked" },
		},
		"RemoteImport": {
			"types that are elsewhere are not fetched", func(f map[string]string) {
				f["Definitions/top.yaml"] = strings.Replace(f["Definitions/top.yaml"], "  - types.yaml\n", "  - https://example.org/types.yaml\n  - types.yaml\n", 1)
			},
			func(c csar.CSAR) bool { return len(c.Warnings) == 1 && len(c.VNFD.Files) == 3 },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
			tc.edit(files)
			got, err := csar.Read(held(files))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !tc.want(got) {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

// TestReadHostile has CSARs that are wrong, and the violation that each gets.
func TestReadHostile(t *testing.T) {
	t.Parallel()
	set := func(name, content string) func(map[string]string) {
		return func(f map[string]string) { f[name] = content }
	}
	replace := func(name, from, to string) func(map[string]string) {
		return func(f map[string]string) { f[name] = strings.Replace(f[name], from, to, 1) }
	}
	cases := map[string]struct {
		reason string
		edit   func(map[string]string)
		file   string
		line   int
		says   string
	}{
		"NoMeta":       {"an archive with descriptors in a folder only", func(f map[string]string) { delete(f, csar.MetaFile) }, csar.MetaFile, 0, "is missing"},
		"EmptyMeta":    {"TOSCA.meta without a line", set(csar.MetaFile, "\n\n"), csar.MetaFile, 1, "is empty"},
		"NoEntry":      {"nothing names the descriptor", set(csar.MetaFile, "CSAR-Version: 1.1\n"), csar.MetaFile, 1, "Entry-Definitions"},
		"EntryOut":     {"a name that leads out of the CSAR", set(csar.MetaFile, "Entry-Definitions: ../top.yaml\n"), csar.MetaFile, 1, "must be the path"},
		"EntryAbs":     {"an absolute name", set(csar.MetaFile, "Entry-Definitions: /etc/passwd\n"), csar.MetaFile, 1, "must be the path"},
		"EntryMissing": {"a file that is not there", set(csar.MetaFile, "Entry-Definitions: top.yaml\n"), "top.yaml", 0, "is missing in the CSAR"},
		"NoManifest":   {"a manifest that is not there", func(f map[string]string) { delete(f, "sample.mf") }, "sample.mf", 0, "is missing in the CSAR"},
		"NotKeyed":     {"a line without a key", set(csar.MetaFile, "Entry-Definitions: Definitions/top.yaml\nnonsense\n"), csar.MetaFile, 2, "Key: value"},
		"KeyTwice":     {"which of two values counts is unknown", set(csar.MetaFile, "CSAR-Version: 1.1\nCSAR-version: 1.2\n"), csar.MetaFile, 2, "twice"},
		"Large":        {"a structure is small", set(csar.MetaFile, strings.Repeat("A", 1<<20+1)), csar.MetaFile, 0, "more than 1048576 bytes"},
		"ListedOut":    {"a listed file leads out of the CSAR", set("sample.mf", "Source: Files/../../etc/passwd\n"), "sample.mf", 1, "must be the path"},
		"Listed":       {"a listed file is not there", set("sample.mf", "\nSource: Files/b.yaml\n"), "Files/b.yaml", 0, "is missing in the CSAR; sample.mf lists it at line 2"},
		"ListedTwice":  {"a file with two hashes", set("sample.mf", "Source: Files/a.yaml\nSource: Files/./a.yaml\n"), "sample.mf", 2, "twice"},
		"Algorithm":    {"a hash that anyone can forge", set("sample.mf", "Source: Files/a.yaml\nAlgorithm: MD5\nHash: 00\n"), "sample.mf", 3, "SHA-256"},
		"Hash":         {"a hash of another length", set("sample.mf", "Source: Files/a.yaml\nAlgorithm: SHA-256\nHash: 00\n"), "sample.mf", 3, "hexadecimal"},
		"NoHash":       {"an algorithm without a hash", set("sample.mf", "Source: Files/a.yaml\nAlgorithm: SHA-256\n"), "sample.mf", 1, "hexadecimal"},
		"HashTwice":    {"two hashes of one file", set("sample.mf", "Source: Files/a.yaml\nHash: 00\nHash: 01\n"), "sample.mf", 3, "twice"},
		"OpenCMS":      {"a signature without an end", set("sample.mf", "Source: Files/a.yaml\n-----BEGIN CMS-----\n"), "sample.mf", 2, "without an end"},
		"AfterCMS":     {"lines that are not signed", set("sample.mf", "-----BEGIN CMS-----\n-----END CMS-----\nSource: Files/a.yaml\n"), "sample.mf", 1, "more than the signature"},
		"ManySources":  {"a list of any length", set("sample.mf", many(2001)), "sample.mf", 2001, "more than 2000"},
		"NotYAML":      {"a descriptor that is not YAML", set("Definitions/types.yaml", "a: [\n"), "Definitions/types.yaml", 1, "is not YAML"},
		"NotTOSCA":     {"a descriptor that is not TOSCA", set("Definitions/types.yaml", "a: b\n"), "Definitions/types.yaml", 1, "tosca_definitions_version"},
		"Documents":    {"a descriptor is one document", set("Definitions/types.yaml", "a: b\n---\na: b\n"), "Definitions/types.yaml", 0, "one YAML document"},
		"List":         {"and a mapping", set("Definitions/types.yaml", "- a\n"), "Definitions/types.yaml", 1, "mapping"},
		"ImportOut":    {"an import leads out of the CSAR", replace("Definitions/top.yaml", "- types.yaml", "- ../../types.yaml"), "Definitions/top.yaml", 3, "not in the CSAR"},
		"ImportGone":   {"an import is not there", replace("Definitions/top.yaml", "- types.yaml", "- type.yaml"), "Definitions/top.yaml", 3, "not in the CSAR"},
		"NoVNF":        {"no node is the VNF", replace("Definitions/top.yaml", "descriptor_id", "descriptor"), "Definitions/top.yaml", 0, "descriptor_id"},
		"OtherType":    {"a node of another type is not the VNF", replace("Definitions/types.yaml", "tosca.nodes.nfv.VNF", "example.VNF"), "Definitions/top.yaml", 0, "descriptor_id"},
		"NoProvider":   {"a property is missing", replace("Definitions/top.yaml", "provider:", "vendor:"), "Definitions/top.yaml", 10, "provider"},
		"LongID":       {"a property is long", replace("Definitions/top.yaml", csartest.VNFD, strings.Repeat("a", 2000)), "Definitions/top.yaml", 10, "descriptor_id"},
		"ListID":       {"a property is not a text", replace("Definitions/top.yaml", csartest.VNFD, "[a]"), "Definitions/top.yaml", 10, "descriptor_id"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
			tc.edit(files)
			_, err := csar.Read(held(files))
			v := nf.ViolationsOf(err)
			if nf.KindOf(err) != nf.Invalid || len(v) == 0 || v[0].File != tc.file || v[0].Line != tc.line || !strings.Contains(v[0].Message, tc.says) {
				t.Errorf("%s: %v, want %s:%d: %s", tc.reason, err, tc.file, tc.line, tc.says)
			}
		})
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Source: http://example.org/%d\n", i)
	}
	return b.String()
}

func TestImportsEndlessly(t *testing.T) {
	t.Parallel()
	files := csartest.Files(nil)
	files["Definitions/types.yaml"] += "imports: [top.yaml, types.yaml]\n"
	if _, err := csar.Read(held(files)); err != nil {
		t.Errorf("files that import each other: %v", err)
	}
	for i := range 300 {
		files[fmt.Sprintf("Definitions/%d.yaml", i)] = fmt.Sprintf("tosca_definitions_version: x\nimports: [%d.yaml]\n", (i+1)%300)
	}
	files["Definitions/types.yaml"] += "# more\n"
	files["Definitions/top.yaml"] = strings.Replace(files["Definitions/top.yaml"], "- types.yaml", "- 0.yaml", 1)
	_, err := csar.Read(held(files))
	if v := nf.ViolationsOf(err); len(v) != 1 || !strings.Contains(v[0].Message, "more than 200 files") {
		t.Errorf("300 files of a descriptor: %v", err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	files := csartest.Files(map[string]string{"Files/a.yaml": configMap, "Files/b.yaml": configMap, "Files/images/disk.img": "disk"})
	c, err := csar.Read(held(files))
	if err != nil {
		t.Fatal(err)
	}
	tampered := maps.Clone(files)
	tampered["Files/b.yaml"] += "data: {evil: 'true'}\n"
	large := held(files)
	large["Files/images/disk.img"] = nil
	opened := func(content string) func(string) (io.ReadCloser, error) {
		return func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	}
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		open   func(string) (io.ReadCloser, error)
		wrong  string // the file; empty: none
	}{
		"Same":          {"every file has its hash", held(files), nil, ""},
		"Tampered":      {"a changed file is named", held(tampered), nil, "Files/b.yaml"},
		"Large":         {"a large file is read as a stream", large, opened("disk"), ""},
		"LargeTampered": {"and named, too", large, opened("dish"), "Files/images/disk.img"},
		"Unopened":      {"large files can be left out", large, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Verify(t.Context(), tc.files, tc.open)
			v := nf.ViolationsOf(err)
			if tc.wrong == "" && err != nil || tc.wrong != "" && (len(v) != 1 || v[0].File != tc.wrong || !strings.Contains(v[0].Message, "sample.mf")) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// FuzzRead reads structures and descriptors of any content. What is read has the
// properties that the rest of the service relies on.
func FuzzRead(f *testing.F) {
	files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
	f.Add(files[csar.MetaFile], files["sample.mf"], files["Definitions/top.yaml"], files["Definitions/types.yaml"])
	f.Add("Entry-Definitions: sample.mf\n", "a: &a [*a]\n", "a: &a {b: *a}\n", "tosca_definitions_version: &x {y: *x}\n")
	f.Fuzz(func(t *testing.T, meta, manifest, top, types string) {
		files := csartest.Files(map[string]string{"Files/a.yaml": configMap})
		files[csar.MetaFile], files["sample.mf"], files["Definitions/top.yaml"], files["Definitions/types.yaml"] = meta, manifest, top, types
		c, err := csar.Read(held(files))
		if err != nil {
			if nf.KindOf(err) != nf.Invalid || len(nf.ViolationsOf(err)) == 0 {
				t.Errorf("an error without a violation: %v", err)
			}
			return
		}
		if c.VNFD.ID == "" || c.VNFD.Provider == "" || len(c.VNFD.Files) == 0 {
			t.Errorf("an incomplete descriptor: %+v", c.VNFD)
		}
		for _, a := range c.VNFD.Artifacts {
			if _, found := files[a.Path]; !found && !strings.Contains(a.Path, "://") {
				t.Errorf("the artifact %q is not in the CSAR", a.Path)
			}
		}
		_ = c.Verify(t.Context(), held(files), nil) // does not panic
	})
}
