package onap

import (
	"bytes"
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

// maxParts is how many parts a form may have.
const maxParts = 64

// upload returns the archive that a request carries: the body as it is, or the
// file in a form. ONAP's adapters send forms that do not say what separates
// their parts; the first line does.
func (a *API) upload(r *http.Request) ([]byte, error) {
	body, err := readBody(r, a.cfg.UploadLimit)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, refuse(http.StatusBadRequest, "Empty body")
	}
	boundary := boundaryOf(r.Header.Get("Content-Type"), body)
	if boundary == "" {
		return body, nil
	}
	parts, err := readForm(body, boundary)
	if err != nil {
		return body, nil //nolint:nilerr // what only begins like a form is an archive, and a wrong one
	}
	file := fileIn(parts)
	if len(file) == 0 {
		return nil, refuse(http.StatusBadRequest, "Empty body")
	}
	return file, nil
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
	file    bool // it has the name of a file
	content []byte
}

// boundaryOf returns what separates the parts of a form, or "" when the body is
// none.
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

// readForm returns the parts of a form, in their order.
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
		parts = append(parts, part{name: p.FormName(), file: p.FileName() != "", content: content})
	}
}

// fileIn returns the content of the first part that has the name of a file, or
// else of the first one.
func fileIn(parts []part) []byte {
	for _, p := range parts {
		if p.file {
			return p.content
		}
	}
	return parts[0].content
}

// named returns the first part of a name.
func named(parts []part, name string) (part, bool) {
	for _, p := range parts {
		if p.name == name {
			return p, true
		}
	}
	return part{}, false
}

// uploadFault tells what is wrong with an upload; unknown is what a thing that
// is not there is called.
func uploadFault(err error, unknown string) error {
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return failAs(unknown, err)
	case nf.ReasonOf(err) == "gzip":
		return failAs("Error in file format: Invalid gzip format", err)
	case nf.ReasonOf(err) == "chart":
		return fail("Unable to detect chart name", err)
	}
	return fail("Error in file format", err)
}
