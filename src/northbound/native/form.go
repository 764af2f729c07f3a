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

// parts yields the named parts of a form. Everything is read into memory, as
// much as the shell lets a body have.
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

// formPart is one field of a form.
type formPart struct {
	name    string
	content []byte
}

func nextPart(reader *multipart.Reader, seen map[string]bool) (formPart, error) {
	part, err := reader.NextPart()
	if err != nil {
		return formPart{}, err // io.EOF must be itself
	}
	name := part.FormName()
	if seen[name] {
		return formPart{}, invalid(name, "is given twice")
	}
	seen[name] = true
	content, err := io.ReadAll(part)
	return formPart{name, content}, err
}

// formError gives the errors of reading a form a kind: those of the body have
// one, and all others are about what the client wrote.
func formError(err error) error {
	if nf.KindOf(err) != nf.Internal {
		return err
	}
	return nf.E(nf.Invalid, "read", "the form", northbound.FormFault(err))
}

// regionForm returns the JSON document that a form stands for: the part
// metadata is one already, other parts are fields of it, and kubeconfig is the
// file as it is.
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
	var text string
	switch p.name {
	case "metadata":
		if err := northbound.CheckDocument(p.content); err != nil {
			return err
		}
		metadata := map[string]json.RawMessage{}
		if err := json.Unmarshal(p.content, &metadata); err != nil {
			return invalid("metadata", "is not a JSON object")
		}
		for name, value := range metadata {
			if _, given := fields[name]; given {
				return invalid(name, "is given twice")
			}
			fields[name] = value
		}
		return nil
	case "labels", "tenants":
		if !json.Valid(p.content) {
			return invalid(p.name, "is not a JSON object")
		}
		fields[p.name] = p.content
		return nil
	case "kubeconfig":
		text = base64.StdEncoding.EncodeToString(p.content)
	default:
		text = string(p.content)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("cannot write the part %q as JSON: %w", p.name, err)
	}
	fields[p.name] = raw
	return nil
}
