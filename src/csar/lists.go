package csar

import (
	"bytes"
	"crypto"
	_ "crypto/sha256" // for hash.New
	_ "crypto/sha512" // likewise
	"encoding/hex"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// block is a group of lines "Key: value" of TOSCA.meta or the manifest.
type block struct {
	file   string
	line   int
	values map[string]value // by their lower-case keys
}

type value struct {
	text string
	line int
}

// blocks splits a file at its empty lines. A line that begins with a space continues
// the value before it.
func (r *reader) blocks(file string, content []byte) []block {
	var out []block
	var now *block
	last := ""
	for i, raw := range strings.Split(string(content), "\n") {
		line := strings.TrimRight(raw, "\r \t")
		switch key, text, found := strings.Cut(line, ":"); {
		case line == "":
			now = nil
		case now != nil && strings.HasPrefix(line, " ") && last != "":
			v := now.values[last]
			v.text += strings.TrimSpace(line)
			now.values[last] = v
		case !found || strings.TrimSpace(key) == "":
			r.fault(file, i+1, "is not a line of the form \"Key: value\"")
			return out
		default:
			if now == nil {
				out = append(out, block{file: file, line: i + 1, values: map[string]value{}})
				now = &out[len(out)-1]
			}
			last = strings.ToLower(strings.TrimSpace(key))
			if _, twice := now.values[last]; twice {
				r.fault(file, i+1, "has the key %q twice in a block", nf.Clip(strings.TrimSpace(key), maxText))
				return out
			}
			now.values[last] = value{strings.TrimSpace(text), i + 1}
		}
	}
	return out
}

const (
	beginCMS = "-----BEGIN CMS-----"
	endCMS   = "-----END CMS-----"
)

// manifest reads the manifest: its artifacts and its signature.
func (r *reader) manifest(name, certificate string) {
	content, ok := r.content(name, maxManifest)
	if !ok {
		return
	}
	r.out.VNFD.Manifest = name
	body := content
	if at := bytes.Index(content, []byte(beginCMS)); at >= 0 {
		body = content[:at]
		end := bytes.Index(content[at:], []byte(endCMS))
		if end < 0 || len(bytes.TrimSpace(content[at+end+len(endCMS):])) > 0 {
			r.fault(name, bytes.Count(body, []byte("\n"))+1, "has a signature without an end, or more than the signature after its text")
			return
		}
		r.out.Signed, r.out.Signature = body, content[at:at+end+len(endCMS)]
	}
	if r.out.CertificateFile = certificate; certificate != "" {
		if r.out.Certificate, ok = r.content(certificate, maxStructure); !ok {
			return
		}
	}
	r.sources(name, body)
}

// sources reads the list of files of a manifest. Each begins with its line Source,
// whether or not an empty line precedes it.
func (r *reader) sources(name string, body []byte) {
	var now *block
	done := func() {
		if now != nil {
			r.artifact(*now, "Source")
		}
		now = nil
	}
	for i, raw := range strings.Split(string(body), "\n") {
		line := strings.TrimRight(raw, "\r \t")
		key, text, found := strings.Cut(line, ":")
		indented := line != strings.TrimLeft(line, " \t")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case line == "" || indented:
			// Lines of the metadata, or of sets of artifacts that are listed by themselves.
		case !found:
			r.fault(name, i+1, "is not a line of the form \"Key: value\"")
			return
		case key == "source":
			done()
			now = &block{file: name, line: i + 1, values: map[string]value{key: {strings.TrimSpace(text), i + 1}}}
		case now != nil:
			if _, twice := now.values[key]; twice {
				r.fault(name, i+1, "has the key %q twice for a source", nf.Clip(key, maxText))
				return
			}
			now.values[key] = value{strings.TrimSpace(text), i + 1}
		}
	}
	done()
}

// artifact adds the artifact of a block.
func (r *reader) artifact(b block, key string) {
	listed, found := b.values[strings.ToLower(key)]
	if !found {
		return // a block of another purpose
	}
	a := nf.PackageArtifact{Path: listed.text, Hash: strings.ToLower(b.values["hash"].text), MediaType: b.values["content-type"].text}
	if !isURL(listed.text) {
		name, ok := clean(listed.text)
		if !ok {
			r.fault(b.file, listed.line, "%s must be the path of a file in the CSAR, or a URL", key)
			return
		}
		a.Path = name
		if _, found := r.files[name]; !found {
			r.fault(name, 0, "is missing in the CSAR; %s lists it at line %d", b.file, listed.line)
			return
		}
		a.Signature, a.Certificate = r.named(b, "Signature"), r.named(b, "Certificate")
	}
	if r.listed[a.Path] {
		r.fault(b.file, listed.line, "lists %q twice", a.Path)
		return
	}
	if r.listed[a.Path] = true; len(r.listed) > maxArtifacts {
		if len(r.listed) == maxArtifacts+1 {
			r.fault(b.file, listed.line, "lists more than %d artifacts", maxArtifacts)
		}
		return
	}
	algorithm := b.values["algorithm"]
	if a.Hash == "" && algorithm.text == "" {
		r.out.VNFD.Artifacts = append(r.out.VNFD.Artifacts, a)
		return
	}
	hash, ok := hashOf(algorithm.text)
	if sum, err := hex.DecodeString(a.Hash); !ok || err != nil || len(sum) != hash.Size() {
		r.fault(b.file, max(b.values["hash"].line, listed.line), "the hash of %q must have an Algorithm of SHA-224, SHA-256, SHA-384 or SHA-512, and its hexadecimal digits", a.Path)
		return
	}
	a.Algorithm = hash.String()
	r.out.VNFD.Artifacts = append(r.out.VNFD.Artifacts, a)
}

func isURL(text string) bool { return strings.Contains(text, "://") }

// hashOf returns the hash that an algorithm's name stands for, as SOL004 and as others
// write it.
func hashOf(name string) (crypto.Hash, bool) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
	case "sha224":
		return crypto.SHA224, true
	case "sha256":
		return crypto.SHA256, true
	case "sha384":
		return crypto.SHA384, true
	case "sha512":
		return crypto.SHA512, true
	}
	return crypto.SHA256, false
}
