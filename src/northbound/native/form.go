package native

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// isForm reports whether the body is multipart/form-data.
func isForm(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == "multipart/form-data"
}

// parts yields the named parts of a form. The caller must read the content of a
// part before it requests the next one.
func parts(r *http.Request) iter.Seq2[formPart, error] {
	return func(yield func(formPart, error) bool) {
		reader, err := r.MultipartReader()
		seen := map[string]bool{}
		for err == nil {
			var p formPart
			if p, err = nextPart(reader, seen); err == nil && !yield(p, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(formPart{}, formError(err))
		}
	}
}

// formPart is one part of a form.
type formPart struct {
	name string
	body io.Reader
}

// read returns the content of a part, at most the given number of bytes.
func (p formPart) read(most int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(p.body, most))
}

func nextPart(reader *multipart.Reader, seen map[string]bool) (formPart, error) {
	part, err := reader.NextPart()
	if err != nil {
		return formPart{}, err // callers compare with io.EOF
	}
	name := part.FormName()
	if seen[name] {
		return formPart{}, invalid(name, "is given twice")
	}
	seen[name] = true
	return formPart{name, northbound.FormPart{Part: part, Fault: formError}}, nil
}

// formError assigns a kind to errors of reading a form. Errors of the body have
// a kind; all others are errors of the client.
func formError(err error) error {
	if northbound.Status(err) != http.StatusInternalServerError {
		return err
	}
	return nf.E(nf.Invalid, "read", "the form", northbound.FormFault(err))
}

// regionForm converts a form to the equivalent JSON document. The part metadata
// is a JSON object, other parts are its fields, and kubeconfig is the unencoded
// file.
func regionForm(r *http.Request) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	for part, err := range parts(r) {
		if err != nil {
			return nil, err
		}
		if err := part.into(fields); err != nil {
			return nil, err
		}
	}
	document, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("cannot join the parts of the form: %w", err)
	}
	return document, nil
}

func (p formPart) into(fields map[string]json.RawMessage) error {
	if _, given := fields[p.name]; given {
		return invalid(p.name, "is given twice")
	}
	content, err := p.read(northbound.MaxDocument)
	if err != nil {
		return err
	}
	var text string
	switch p.name {
	case "metadata":
		if err := northbound.CheckDocument(content); err != nil {
			return err
		}
		metadata := map[string]json.RawMessage{}
		if err := json.Unmarshal(content, &metadata); err != nil {
			return invalid("metadata", "is not a JSON object")
		}
		for name, value := range metadata {
			if _, given := fields[name]; given {
				return invalid(name, "is given twice")
			}
			fields[name] = value
		}
		return nil
	case "labels", "tenants", "cni_plugins", "interfaces":
		if !json.Valid(content) {
			return invalid(p.name, "is not a JSON object")
		}
		fields[p.name] = content
		return nil
	case "kubeconfig":
		text = base64.StdEncoding.EncodeToString(content)
	default:
		text = string(content)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("cannot write the part %q as JSON: %w", p.name, err)
	}
	fields[p.name] = raw
	return nil
}
