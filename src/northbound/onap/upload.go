package onap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// maxParts limits the number of parts of a form.
const maxParts = 64

// archives receives uploaded archives.
type archives struct{ staging northbound.Staging }

// put passes the archive of a request to store, and answers without a body.
// Unknown is the text of the error if the object does not exist.
func (as archives) put(w http.ResponseWriter, r *http.Request, unknown string, store func(context.Context, io.Reader) error) error {
	archive, err := as.receive(r)
	if err != nil {
		return err
	}
	defer archive.Discard(r.Context())
	if archive.Size() == 0 {
		return refuse(http.StatusBadRequest, "Empty body")
	}
	if err := store(r.Context(), archive); err != nil {
		return uploadFault(err, unknown)
	}
	return done(w, http.StatusOK)
}

// receive stages the archive of a request: the whole body, or the file in a form.
// ONAP's adapters send forms without the boundary in the Content-Type; it is taken
// from the first line.
func (as archives) receive(r *http.Request) (northbound.Staged, error) {
	const first = 4 << 10 // bytes; a boundary is much shorter
	body := bufio.NewReaderSize(r.Body, first)
	begin, err := body.Peek(first)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if boundary := boundaryOf(r.Header.Get("Content-Type"), begin); boundary != "" {
		return as.fromForm(r.Context(), multipart.NewReader(body, boundary))
	}
	return as.staging(r.Context(), body)
}

// fromForm stages the first part that has a file name, or else the first part. If
// the body starts like a form but is not one, the error is that of an archive that
// is not gzipped.
func (as archives) fromForm(ctx context.Context, form *multipart.Reader) (northbound.Staged, error) {
	f := &formFile{staging: as.staging}
	if err := f.find(ctx, form); err != nil {
		f.drop(ctx)
		return nil, err
	}
	return f.content, nil
}

// formFile is the part of a form that is the archive, as far as it is known.
type formFile struct {
	staging northbound.Staging
	content northbound.Staged // nil: none yet
	named   bool              // it has a file name
}

// find reads all parts of a form.
func (f *formFile) find(ctx context.Context, form *multipart.Reader) error {
	for n := 0; ; n++ {
		p, err := form.NextRawPart()
		if errors.Is(err, io.EOF) && n > 0 {
			return nil
		}
		if err == nil && n == maxParts {
			err = fmt.Errorf("it has more than %d parts", maxParts)
		}
		if err != nil {
			return formFault(err)
		}
		named := p.FileName() != ""
		if n > 0 && (!named || f.named) {
			continue
		}
		f.drop(ctx)
		f.named = named
		if f.content, err = f.staging(ctx, northbound.FormPart{Part: p, Fault: formFault}); err != nil {
			return err
		}
	}
}

// drop discards the content, if any.
func (f *formFile) drop(ctx context.Context) {
	if f.content != nil {
		f.content.Discard(ctx)
		f.content = nil
	}
}

// formFault returns the error for a form that cannot be read. An error of the
// request's body is returned unchanged.
func formFault(err error) error {
	if northbound.Status(err) != http.StatusInternalServerError {
		return err
	}
	return uploadFault(&nf.Error{Kind: nf.Invalid, Op: "read", Subject: "the form", Reason: nf.ReasonGzip, Err: northbound.FormFault(err)}, "")
}

func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("its body is larger than %d bytes", limit))
	}
	return body, nil
}

// part is one part of a form.
type part struct {
	name    string
	content []byte
}

// boundaryOf returns the boundary of a form, or "" if the body is not a form.
func boundaryOf(contentType string, body []byte) string {
	if !bytes.HasPrefix(bytes.TrimLeft(body, "\r\n"), []byte("--")) {
		return ""
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	if err == nil && strings.HasPrefix(media, "multipart/") && parameters["boundary"] != "" {
		return parameters["boundary"]
	}
	line, _, found := bytes.Cut(bytes.TrimLeft(body, "\r\n"), []byte("\n"))
	boundary := strings.TrimRight(string(line[2:]), " \t\r")
	const longest = 70 // RFC 2046
	if !found || boundary == "" || len(boundary) > longest || strings.Trim(boundary, "-") == "" {
		return ""
	}
	return boundary
}

// readForm returns the parts of a form in order.
func readForm(body []byte, boundary string) ([]part, error) {
	reader := multipart.NewReader(bytes.NewReader(body), boundary)
	var parts []part
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) && len(parts) > 0 {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the form: %w", northbound.FormFault(err))
		}
		if len(parts) == maxParts {
			return nil, fmt.Errorf("cannot read the form: it has more than %d parts", maxParts)
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read the form: %w", northbound.FormFault(err))
		}
		parts = append(parts, part{name: p.FormName(), content: content})
	}
}

// named returns the first part with a name.
func named(parts []part, name string) (part, bool) {
	for _, p := range parts {
		if p.name == name {
			return p, true
		}
	}
	return part{}, false
}

// uploadFault returns the error for a failed upload. Unknown is the text if the
// object does not exist.
func uploadFault(err error, unknown string) error {
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return failAs(unknown, err)
	case nf.ReasonOf(err) == nf.ReasonGzip:
		return failAs("Error in file format: Invalid gzip format", err)
	case nf.ReasonOf(err) == nf.ReasonChart:
		return fail("Unable to detect chart name", err)
	}
	return fail("Error in file format", err)
}
