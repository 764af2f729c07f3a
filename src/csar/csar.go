package csar

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// MetaFile is the file that makes an archive a CSAR.
const MetaFile = "TOSCA-Metadata/TOSCA.meta"

const (
	maxStructure = 1 << 20 // bytes of TOSCA.meta and of the certificate
	maxManifest  = 2 << 20 // bytes of the manifest
	maxArtifacts = 2000
	maxText      = 1024 // bytes of a value
)

// CSAR is the structure of a CSAR.
type CSAR struct {
	VNFD nf.VNFD

	// Signed is the part of the manifest that its Signature, in PEM, is about. Both are
	// nil without a signature.
	Signed, Signature []byte
	// Certificate is the file of the certificate, in PEM; nil: there is none.
	Certificate     []byte
	CertificateFile string // its path

	Warnings []string
}

// Is reports whether the names of files are those of a CSAR: with TOSCA.meta, or with a
// manifest and a descriptor of the same name at the top.
func Is(files map[string][]byte) bool {
	if _, found := files[MetaFile]; found {
		return true
	}
	for name := range files {
		if base, ok := strings.CutSuffix(name, ".mf"); ok && !strings.Contains(name, "/") {
			_, yaml := files[base+".yaml"]
			_, yml := files[base+".yml"]
			if yaml || yml {
				return true
			}
		}
	}
	return false
}

// Read reads the structure of a CSAR from its files, by their clean paths. A file whose
// content is nil is too large to be part of it. Read returns nf.Invalid with a violation
// for each fault.
func Read(files map[string][]byte) (CSAR, error) {
	r := &reader{files: files, listed: map[string]bool{}}
	r.structure()
	if len(r.faults) > 0 {
		return CSAR{}, nf.E(nf.Invalid, "read", "the CSAR", r.faults)
	}
	return r.out, nil
}

// reader reads one CSAR and collects its faults.
type reader struct {
	files  map[string][]byte
	listed map[string]bool // the artifacts
	out    CSAR
	faults nf.Violations
}

const maxFaults = 50

func (r *reader) fault(file string, line int, format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, nf.Violation{File: nf.Clip(file, maxText), Line: line, Message: fmt.Sprintf(format, args...)})
	}
}

// content returns a file that is part of the structure, or false after a fault.
func (r *reader) content(name string, most int) ([]byte, bool) {
	content, found := r.files[name]
	switch {
	case !found:
		r.fault(name, 0, "is missing in the CSAR")
	case content == nil || len(content) > most:
		r.fault(name, 0, "has more than %d bytes", most)
	default:
		return content, true
	}
	return nil, false
}

func (r *reader) structure() {
	entry, manifest, certificate := r.layout()
	if len(r.faults) > 0 {
		return
	}
	if manifest != "" {
		r.manifest(manifest, certificate)
	}
	r.descriptor(entry)
}

// descriptor reads the VNF descriptor that begins with a file.
func (r *reader) descriptor(entry string) {
	vnfd, warnings, err := tosca.ReadVNFD(r.files, entry)
	vnfd.Manifest, vnfd.Artifacts = r.out.VNFD.Manifest, r.out.VNFD.Artifacts
	r.out.VNFD, r.faults = vnfd, append(r.faults, nf.ViolationsOf(err)...)
	r.out.Warnings = append(r.out.Warnings, warnings...)
}

// layout returns the entry of the descriptor, and the manifest and the certificate, which
// may be empty. It lists the artifacts of TOSCA.meta.
func (r *reader) layout() (entry, manifest, certificate string) {
	if _, found := r.files[MetaFile]; !found {
		return r.topLayout()
	}
	content, ok := r.content(MetaFile, maxStructure)
	if !ok {
		return "", "", ""
	}
	blocks := r.blocks(MetaFile, content)
	if len(blocks) == 0 {
		r.fault(MetaFile, 1, "is empty")
		return "", "", ""
	}
	first := blocks[0]
	entry, manifest, certificate = r.named(first, "Entry-Definitions"), r.named(first, "ETSI-Entry-Manifest", "Entry-Manifest"), r.named(first, "ETSI-Entry-Certificate", "Entry-Certificate")
	if entry == "" && len(r.faults) == 0 {
		r.fault(MetaFile, first.line, "lacks Entry-Definitions, the file of the VNF descriptor")
	}
	if manifest == "" {
		for _, b := range blocks[1:] {
			r.artifact(b, "Name")
		}
	}
	if manifest == "" && entry != "" { // SOL004 names it after the descriptor
		manifest = r.beside(entry)
	}
	return entry, manifest, certificate
}

// beside returns the manifest with the name of the entry at the top of the CSAR, if any.
func (r *reader) beside(entry string) string {
	name := strings.TrimSuffix(path.Base(entry), path.Ext(entry)) + ".mf"
	if _, found := r.files[name]; found {
		return name
	}
	return ""
}

// topLayout finds the only descriptor at the top of a CSAR without TOSCA.meta.
func (r *reader) topLayout() (entry, manifest, certificate string) {
	var found []string
	for name := range r.files {
		if ext := path.Ext(name); !strings.Contains(name, "/") && (ext == ".yaml" || ext == ".yml") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if len(found) != 1 {
		r.fault(MetaFile, 0, "is missing, and there are %d descriptors at the top instead of one", len(found))
		return "", "", ""
	}
	if cert := strings.TrimSuffix(found[0], path.Ext(found[0])) + ".cert"; r.files[cert] != nil {
		certificate = cert
	}
	return found[0], r.beside(found[0]), certificate
}

// named returns the file that a block names by one of the keys, or "".
func (r *reader) named(b block, keys ...string) string {
	for _, key := range keys {
		v, found := b.values[strings.ToLower(key)]
		if !found || v.text == "" {
			continue
		}
		name, ok := clean(v.text)
		if !ok {
			r.fault(b.file, v.line, "%s must be the path of a file in the CSAR", key)
			return ""
		}
		if _, found := r.files[name]; !found {
			r.fault(name, 0, "is missing in the CSAR; %s names it as %s", b.file, key)
			return ""
		}
		return name
	}
	return ""
}

// clean returns the clean form of a path in the CSAR, or false if it leads out of it.
func clean(name string) (string, bool) {
	if name == "" || len(name) > maxText || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\\x00") {
		return "", false
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	name = path.Clean(name)
	return name, name != "."
}
