package vnfpkgm

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

const (
	mediaText = "text/plain"
	mediaZip  = "application/zip"
)

// metaFile is a part of a VNFD in a zip.
const metaFile = "TOSCA-Metadata/TOSCA.meta"

func (cs contents) vnfd(w http.ResponseWriter, r *http.Request) error {
	text, zipped := sol013.Accepts(r, mediaText), sol013.Accepts(r, mediaZip)
	p, err := cs.packages.find(r.Context(), mux.Vars(r)["csar_id"])
	switch {
	case err != nil:
		return err
	case !text && !zipped:
		return northbound.Refusal(http.StatusNotAcceptable, "a VNFD is "+mediaText+" or "+mediaZip)
	case p.VNFD == nil:
		return &nf.Error{Kind: nf.Conflict, Op: "read", Subject: "the VNFD of package " + p.ID, Reason: nf.ReasonNoContent, Err: errNoContent}
	case text && len(p.VNFD.Files) == 1:
		return cs.sendText(w, r, p)
	case !zipped:
		return nf.E(nf.Invalid, "read", "the VNFD of package "+p.ID, errText)
	}
	return cs.sendZip(w, r, p)
}

func (cs contents) sendText(w http.ResponseWriter, r *http.Request, p nf.Package) error {
	_, file, size, err := cs.packages.archives.File(r.Context(), p.ID, p.VNFD.Files[0])
	if err != nil {
		return err
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", mediaText) // without a charset, which clients of Tacker reject
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if _, err := io.CopyN(w, file, size); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	return nil
}

// sendZip sends the files of the VNFD, with TOSCA.meta, which names its entry.
func (cs contents) sendZip(w http.ResponseWriter, r *http.Request, p nf.Package) error {
	names := slices.Clone(p.VNFD.Files)
	if slices.Contains(p.Files, metaFile) && !slices.Contains(names, metaFile) {
		names = slices.Insert(names, 0, metaFile)
	}
	// The first file is opened before the response begins, so that an error can be one.
	_, first, _, err := cs.packages.archives.File(r.Context(), p.ID, names[0])
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaZip)
	w.WriteHeader(http.StatusOK)
	out := zip.NewWriter(w)
	err = add(out, names[0], first)
	for _, name := range names[1:] {
		if err == nil {
			err = cs.addFile(r.Context(), out, p.ID, name)
		}
	}
	if err != nil || out.Close() != nil {
		panic(http.ErrAbortHandler) // as above
	}
	return nil
}

func (cs contents) addFile(ctx context.Context, to *zip.Writer, id, name string) error {
	_, file, _, err := cs.packages.archives.File(ctx, id, name)
	if err != nil {
		return err
	}
	return add(to, name, file)
}

// add adds a file to a zip, and closes it.
func add(to *zip.Writer, name string, file io.ReadCloser) error {
	defer file.Close()
	entry, err := to.Create(name)
	if err != nil {
		return fmt.Errorf("cannot add a file to the zip: %w", err)
	}
	if _, err := io.Copy(entry, file); err != nil {
		return fmt.Errorf("cannot copy a file to the zip: %w", err)
	}
	return nil
}

// shown returns a URL without credentials and without a query, which may contain some.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
