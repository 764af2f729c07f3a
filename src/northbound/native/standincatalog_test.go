package native_test

import (
	"cmp"
	"context"
	"io"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func (s *standIn) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	s.ask(r)
	s.region.ID = r.ID
	return s.region, s.fail["Register"]
}

func (s *standIn) Region(_ context.Context, id string) (nf.Region, error) {
	if id != s.region.ID {
		return nf.Region{}, missing("cloud region", id)
	}
	return s.region, s.fail["Region"]
}

func (s *standIn) RegionsFrom(_ context.Context, c nf.Cursor) iter.Seq2[nf.Region, error] {
	all := copies(s, s.region, func(r *nf.Region, id string) { r.ID = id })
	return from(c, all, func(r nf.Region) string { return r.ID }, s.fail["Regions"])
}

func (s *standIn) Reparent(_ context.Context, id, to string) (nf.Region, error) {
	s.ask("reparent " + id + " to " + to)
	moved := s.region
	moved.Parent = &nf.Parent{Region: to, Workload: nf.WorkloadCluster{Namespace: "clusters", Cluster: "edge"}}
	return moved, s.fail["Reparent"]
}

func (s *standIn) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	if _, err := s.Region(ctx, id); err != nil {
		return nf.Region{}, err
	}
	changed := s.region
	for range 2 { // as a store does that was overtaken
		changed = s.region
		if err := edit(&changed); err != nil {
			return nf.Region{}, err
		}
	}
	s.ask(changed)
	return changed, s.fail["UpdateRegion"]
}

func (s *standIn) RemoveRegion(ctx context.Context, id string) error {
	if _, err := s.Region(ctx, id); err != nil {
		return err
	}
	return s.fail["RemoveRegion"]
}

// stage keeps content in the stand-in's own store.
func (s *standIn) stage(ctx context.Context, content io.Reader) (northbound.Staged, error) {
	staged, err := store.NewBlobs(s.staged).Stage(ctx, content, uploadLimit)
	if err != nil {
		return nil, err
	}
	return staged, nil
}

// upload is what an upload was asked for.
type upload struct {
	as      nf.Package
	content string
}

func (s *standIn) MayUpload(_ context.Context, as nf.Package) error {
	s.ask(mayUpload{as.Project, as.ID})
	return s.fail["MayUpload"]
}

// mayUpload is what the permission was asked for.
type mayUpload struct{ project, id string }

func (s *standIn) Upload(_ context.Context, as nf.Package, content io.Reader) (nf.Package, bool, error) {
	got, err := io.ReadAll(content)
	if err != nil {
		return nf.Package{}, false, nf.E(nf.KindOf(err), "upload", "package "+as.ID, err)
	}
	s.ask(upload{as, string(got)})
	p := s.pkg
	p.ID, p.Project, p.Request, p.Source = cmp.Or(as.ID, "new-1"), as.Project, as.Request, as.Source
	return p, s.created, s.fail["Upload"]
}

func (s *standIn) CreatePackage(_ context.Context, as nf.Package) (nf.Package, error) {
	s.ask(as)
	as.ID = cmp.Or(as.ID, "new-1")
	return as, s.fail["CreatePackage"]
}

func (s *standIn) Package(_ context.Context, id string) (nf.Package, error) {
	if id != s.pkg.ID {
		return nf.Package{}, missing("package", id)
	}
	return s.pkg, s.fail["Package"]
}

func (s *standIn) PackagesFrom(_ context.Context, c nf.Cursor) iter.Seq2[nf.Package, error] {
	all := copies(s, s.pkg, func(p *nf.Package, id string) { p.ID = id })
	return from(c, all, func(p nf.Package) string { return p.ID }, s.fail["Packages"])
}

func (s *standIn) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	p, err := s.Package(ctx, id)
	return p, io.NopCloser(strings.NewReader(s.archive)), err
}

func (s *standIn) UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error) {
	if _, err := s.Package(ctx, id); err != nil {
		return nf.Package{}, err
	}
	changed := s.pkg
	for range 2 { // as a store does that was overtaken
		changed = s.pkg
		if err := edit(&changed); err != nil {
			return nf.Package{}, err
		}
	}
	s.ask(changed.UserData)
	return changed, s.fail["UpdatePackage"]
}

func (s *standIn) RemovePackage(ctx context.Context, id string) error {
	if _, err := s.Package(ctx, id); err != nil {
		return err
	}
	return s.fail["RemovePackage"]
}

func (s *standIn) RegionState(r nf.Region) nf.RegionState {
	if r.ID != s.region.ID {
		return nf.RegionState{}
	}
	return s.state
}

func (s *standIn) RegionCapabilities(_ context.Context, id string, fresh bool) (nf.RegionCapabilities, error) {
	if id != s.region.ID {
		return nf.RegionCapabilities{}, missing("cloud region", id)
	}
	s.ask(fresh)
	return s.capabilities, s.fail["RegionCapabilities"]
}

func (s *standIn) Entries(_ context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	s.ask(f)
	return func(yield func(nf.AuditEntry, error) bool) {
		for _, e := range s.entries {
			if f.Matches(e) && (f.Before == "" || e.Place() < f.Before) && !yield(e, nil) {
				return
			}
		}
		if err := s.fail["Entries"]; err != nil {
			yield(nf.AuditEntry{}, err)
		}
	}
}

func (s *standIn) KeyStatus(context.Context) (nf.KeyStatus, error) {
	return s.keys, s.fail["KeyStatus"]
}

func (s *standIn) Reencrypt(context.Context) (nf.KeyStatus, error) {
	s.ask("reseal")
	return s.keys, s.fail["Reseal"]
}

func (s *standIn) Backup(_ context.Context, recipient string, w io.Writer) error {
	s.ask(recipient)
	if s.backup != "" {
		if _, err := io.WriteString(w, s.backup); err != nil {
			return err
		}
	}
	return s.fail["Backup"]
}
