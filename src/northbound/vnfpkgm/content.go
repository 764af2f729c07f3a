package vnfpkgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// contents serves the content of packages.
type contents struct {
	packages packages
	fetch    Fetch
	logger   *slog.Logger
}

func (cs contents) upload(w http.ResponseWriter, r *http.Request) error {
	p := nf.Package{ID: mux.Vars(r)["csar_id"], Kind: kind}
	return cs.onboard(w, r, p, func(ctx context.Context, into func(context.Context, io.Reader) error) error { return into(ctx, r.Body) })
}

// source is an UploadVnfPackageFromUriRequest.
type source struct {
	Address  string `json:"addressInformation"`
	Username string `json:"userName"`
	Password string `json:"password"`
}

func (cs contents) uploadFrom(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[source](r)
	if err != nil {
		return err
	}
	from := Source{URL: in.Address, Username: in.Username, Password: nf.Secret(in.Password)}
	p := nf.Package{ID: mux.Vars(r)["csar_id"], Kind: kind, Source: shown(in.Address)}
	return cs.onboard(w, r, p, func(ctx context.Context, into func(context.Context, io.Reader) error) error {
		return cs.fetch(ctx, from, into)
	})
}

func (cs contents) onboard(w http.ResponseWriter, r *http.Request, p nf.Package, fetch func(context.Context, func(context.Context, io.Reader) error) error) error {
	// A client that no longer waits for the response finds the result in the package.
	made, err := cs.packages.archives.Onboard(context.WithoutCancel(r.Context()), p, fetch)
	if err != nil {
		return err
	}
	cs.logger.InfoContext(r.Context(), "VNF package onboarded", "package", made.ID, "digest", made.Digest, "size", made.Size)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (cs contents) download(w http.ResponseWriter, r *http.Request) error {
	p, content, err := cs.packages.archives.ContentAt(r.Context(), mux.Vars(r)["csar_id"])
	if err == nil {
		err = known(p)
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", strconv.Quote(p.Digest))
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", p.ID+".zip"))
	return send(w, r, p.MediaType, p.Size, func(from int64) (io.Reader, error) { return io.NewSectionReader(content, from, p.Size-from), nil })
}

func (cs contents) artifact(w http.ResponseWriter, r *http.Request) error {
	id, name := mux.Vars(r)["csar_id"], mux.Vars(r)["artifact_path"]
	file, size, err := cs.open(r.Context(), id, name)
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Disposition", "attachment") // a browser must not show it as a page of the service
	return send(w, r, artifactMedia(r), size, func(from int64) (io.Reader, error) {
		_, err := io.CopyN(io.Discard, file, from)
		return file, err
	})
}

// artifactMedia returns the media type of an artifact. The client of Tacker decodes
// every type except zip as text, and so damages a chart or an image.
func artifactMedia(r *http.Request) string {
	if strings.HasPrefix(r.UserAgent(), "python-tackerclient") {
		return mediaZip
	}
	return "application/octet-stream"
}

// open opens a file of a VNF package.
func (cs contents) open(ctx context.Context, id, name string) (io.ReadCloser, int64, error) {
	p, err := cs.packages.find(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	if p.State() == nf.PackageOnboarded && !slices.Contains(p.Files, name) {
		return nil, 0, nf.E(nf.NotFound, "find", fmt.Sprintf("artifact %q of VNF package %s", nf.Clip(name, maxQuote), id), nil)
	}
	_, file, size, err := cs.packages.archives.File(ctx, id, name)
	return file, size, err
}

const maxQuote = 200

// send sends content of the given size, or the range that the request asks for. Open
// returns the content from an offset on.
func send(w http.ResponseWriter, r *http.Request, media string, size int64, open func(from int64) (io.Reader, error)) error {
	from, length, status := int64(0), size, http.StatusOK
	h := w.Header()
	if of, ok := parseRange(r.Header.Get("Range")); ok {
		if from, length, ok = of.in(size); !ok {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
			for _, name := range [...]string{"Content-Disposition", "ETag"} {
				h.Del(name)
			}
			return northbound.Refusal(http.StatusRequestedRangeNotSatisfiable, fmt.Sprintf("the range is outside the content, which has %d bytes", size))
		}
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size))
	}
	content, err := open(from)
	if err != nil {
		h.Del("Content-Range")
		return err
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if _, err := io.CopyN(w, content, length); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	return nil
}

var (
	errText      = errors.New("it has several files; ask for application/zip")
	errNoContent = errors.New("it has no content yet; upload its archive first")
)
