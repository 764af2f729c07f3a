package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// serviceKeeper keeps one network service of project A.
type serviceKeeper struct{}

func vpn() nf.NetworkService {
	return nf.NetworkService{ID: "vpn", Project: accesstest.ProjectA, State: nf.ServiceFailed, Content: nf.ServiceContent{Members: []nf.ServiceMember{vpnMember("fw")}}}
}

func vpnMember(name string) nf.ServiceMember {
	return nf.ServiceMember{Name: name, Region: accesstest.East, Spec: nf.Spec{Package: "pkg-" + accesstest.ProjectA}}
}

func (serviceKeeper) Get(context.Context, string) (nf.NetworkService, error) { return vpn(), nil }

func (serviceKeeper) From(context.Context, nf.Cursor) iter.Seq2[nf.NetworkService, error] {
	return sequence([]nf.NetworkService{vpn()})
}

func (serviceKeeper) Create(context.Context, nf.ServiceRequest) (nf.Operation, error) {
	return nf.Operation{}, nil
}

// Change makes the edit, as a keeper does.
func (serviceKeeper) Change(_ context.Context, _ string, req nf.ServiceChangeRequest) (nf.Operation, error) {
	in := vpn()
	return nf.Operation{}, req.Edit(&in)
}

func (serviceKeeper) Terminate(context.Context, string, nf.Options) (nf.Operation, error) {
	return nf.Operation{}, nil
}

func (serviceKeeper) Undo(context.Context, string, nf.Options) (nf.Operation, error) {
	return nf.Operation{}, nil
}

func (serviceKeeper) PreviewCreate(context.Context, nf.ServiceRequest) ([]nf.MemberPreview, error) {
	return nil, nil
}

func (serviceKeeper) PreviewChange(_ context.Context, _ string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error) {
	in := vpn()
	return nil, req.Edit(&in)
}

func (serviceKeeper) PreviewTerminate(context.Context, string, nf.Options) ([]nf.MemberPreview, error) {
	return nil, nil
}

// TestServices checks who may read and change a network service with a member in the region
// east, and who may add one in the same region.
func TestServices(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	services := access.NewServices(h.Guarded, serviceKeeper{})
	edit := func(members ...nf.ServiceMember) nf.ServiceChangeRequest {
		return nf.ServiceChangeRequest{Edit: func(s *nf.NetworkService) error { s.Content.Members = members; return nil }}
	}
	cases := map[string]struct {
		reason            string
		who               string
		read, change, dry nf.Kind // of the errors; Internal: none
	}{
		"Admin":    {"the project is its own", "admin-a", nf.Internal, nf.Internal, nf.Internal},
		"All":      {"every project is its own", "admin-all", nf.Internal, nf.Internal, nf.Internal},
		"Viewer":   {"reading is enough for a dry run", "viewer-a-east", nf.Internal, nf.Forbidden, nf.Internal},
		"Stranger": {"the service does not exist for others", "operator-b", nf.NotFound, nf.NotFound, nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := h.as(t, tc.who)
			want := func(what string, kind nf.Kind, err error) {
				t.Helper()
				if refusal(err) != kind {
					t.Errorf("%s: %s: %v", tc.reason, what, err)
				}
			}
			_, err := services.Get(ctx, "vpn")
			want("get", tc.read, err)
			_, err = services.Terminate(ctx, "vpn", nf.Options{})
			want("terminate", tc.change, err)
			_, err = services.Undo(ctx, "vpn", nf.Options{})
			want("undo", tc.change, err)
			_, err = services.Change(ctx, "vpn", edit(vpnMember("fw"), vpnMember("new")))
			want("change", tc.change, err)
			_, err = services.PreviewChange(ctx, "vpn", edit(vpnMember("new")))
			want("preview", tc.dry, err)
			_, err = services.PreviewTerminate(ctx, "vpn", nf.Options{})
			want("preview of terminate", tc.dry, err)
			var listed []string
			for s, err := range services.From(ctx, nf.Cursor{}) {
				want("list", nf.Internal, err)
				listed = append(listed, s.ID)
			}
			if (len(listed) == 1) != (tc.read == nf.Internal) {
				t.Errorf("%s: the list has %v", tc.reason, listed)
			}
		})
	}
}

// TestServicePlacement has a service with a member whose region is chosen.
func TestServicePlacement(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	services := access.NewServices(h.Guarded, serviceKeeper{})
	for who, want := range map[string]nf.Kind{"admin-a": nf.Internal, "viewer-a-east": nf.Forbidden, "operator-b": nf.Forbidden} {
		in := vpn()
		in.Content.Members[0].Region, in.Content.Members[0].Placement = "", &nf.Placement{}
		if _, err := services.Create(h.as(t, who), nf.ServiceRequest{Service: in}); refusal(err) != want {
			t.Errorf("%s creates it: %v", who, err)
		}
	}
}
