package access_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// archiveShelf is an ArchiveKeeper that notes its calls. Its packages are in a project.
type archiveShelf struct {
	project string // that a package is in once it is read
	done    []string
}

func (s *archiveShelf) pkg(id string) nf.Package { return nf.Package{ID: id, Project: s.project} }

func (s *archiveShelf) Onboard(ctx context.Context, as nf.Package, fetch func(ctx context.Context, into func(context.Context, io.Reader) error) error) (nf.Package, error) {
	s.done = append(s.done, "onboard")
	return s.pkg(as.ID), fetch(ctx, func(context.Context, io.Reader) error { return nil })
}

func (s *archiveShelf) File(_ context.Context, id, _ string) (nf.Package, io.ReadCloser, int64, error) {
	s.done = append(s.done, "file")
	return s.pkg(id), io.NopCloser(strings.NewReader("")), 0, nil
}

func (s *archiveShelf) ContentAt(_ context.Context, id string) (nf.Package, io.ReaderAt, error) {
	s.done = append(s.done, "content")
	return s.pkg(id), strings.NewReader(""), nil
}

func (s *archiveShelf) Users(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		yield(nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-b"}, nil)
	}
}

func TestGuardedArchives(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who   string
		read, changed nf.Kind // Internal: allowed
	}{
		"Operator":  {"package:write in the project", "operator-a-east", nf.Internal, nf.Internal},
		"Viewer":    {"package:read is not enough to upload", "viewer-all", nf.Internal, nf.Forbidden},
		"Other":     {"a package of another project does not exist", "operator-b", nf.NotFound, nf.NotFound},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated, nf.Unauthenticated},
	}
	is := func(err error, kind nf.Kind) bool {
		return (err == nil) == (kind == nf.Internal) && nf.KindOf(err) == kind
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, ctx, fetched := &archiveShelf{project: accesstest.ProjectA}, h.as(t, tc.who), false
			archives := access.NewArchives(h.Guarded, s)
			_, err := archives.Onboard(ctx, nf.Package{ID: "pkg-a"}, func(context.Context, func(context.Context, io.Reader) error) error {
				fetched = true
				return nil
			})
			for what, err := range map[string]error{"onboard": err, "may change": archives.MayChange(ctx, "pkg-a")} {
				if !is(err, tc.changed) {
					t.Errorf("%s: %s: %v, want %s", tc.reason, what, err, tc.changed)
				}
			}
			if fetched != (tc.changed == nf.Internal) {
				t.Errorf("%s: fetched %t", tc.reason, fetched)
			}
			_, _, _, fileErr := archives.File(ctx, "pkg-a", "a.yaml")
			_, _, contentErr := archives.ContentAt(ctx, "pkg-a")
			used, usedErr := archives.InUse(ctx, "pkg-a")
			for what, err := range map[string]error{"file": fileErr, "content": contentErr, "use": usedErr} {
				if !is(err, tc.read) {
					t.Errorf("%s: %s: %v, want %s", tc.reason, what, err, tc.read)
				}
			}
			if used != (tc.read == nf.Internal) {
				t.Errorf("%s: in use %t, whatever the caller may see of it", tc.reason, used)
			}
			if tc.read != nf.Internal && len(s.done) > 0 {
				t.Errorf("%s: these calls were made: %v", tc.reason, s.done)
			}
		})
	}
}

// TestGuardedArchivesLook has a package that another one replaces while it is read.
func TestGuardedArchivesLook(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	archives, ctx := access.NewArchives(h.Guarded, &archiveShelf{project: accesstest.ProjectB}), h.as(t, "operator-a-east")
	_, _, _, fileErr := archives.File(ctx, "pkg-a", "a.yaml")
	_, _, contentErr := archives.ContentAt(ctx, "pkg-a")
	if nf.KindOf(fileErr) != nf.NotFound || nf.KindOf(contentErr) != nf.NotFound {
		t.Errorf("a package of another project was read: %v", errors.Join(fileErr, contentErr))
	}
}
