package access_test

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// linkKeeper keeps one network of project A. An instance of each project uses it.
type linkKeeper struct {
	fail error // of a preview; nil: none
}

func holding(project string) nf.Holder {
	scope := nf.Scope{Project: project, Region: accesstest.East}
	return nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: vnf(project, accesstest.East)}, Scope: scope}
}

func (linkKeeper) Get(_ context.Context, id string) (nf.Shared, error) {
	return nf.Shared{ID: id, Region: accesstest.East, Project: accesstest.ProjectA}, nil
}

func (linkKeeper) From(context.Context, nf.Cursor) iter.Seq2[nf.Shared, error] {
	return sequence([]nf.Shared{})
}

func (linkKeeper) Holders(context.Context, string) iter.Seq2[nf.Holder, error] {
	return sequence([]nf.Holder{holding(accesstest.ProjectA), holding(accesstest.ProjectB)})
}

func (linkKeeper) Create(context.Context, nf.SharedRequest) (nf.Operation, error) {
	return nf.Operation{}, nil
}

func (linkKeeper) Release(context.Context, string, nf.SharedReleaseRequest) (nf.Operation, error) {
	return nf.Operation{}, nil
}

// Change asks whether the caller may restart the instances, as a keeper does.
func (linkKeeper) Change(ctx context.Context, _ string, req nf.SharedChangeRequest) (nf.Operation, error) {
	if req.Restart {
		for _, project := range []string{accesstest.ProjectA, accesstest.ProjectB} {
			if err := req.MayRestart(ctx, holding(project)); err != nil {
				return nf.Operation{}, err
			}
		}
	}
	return nf.Operation{}, nil
}

func (l linkKeeper) PreviewChange(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.SharedPreview, error) {
	_, err := l.Change(ctx, id, req)
	err = cmp.Or(l.fail, err)
	return nf.SharedPreview{Users: []nf.SharedUser{{Holder: holding(accesstest.ProjectA)}, {Holder: holding(accesstest.ProjectB)}}}, err
}

// TestSharedChange checks who may change a network that instances use, and restart these.
func TestSharedChange(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	networks := access.NewNetworks(h.Guarded, linkKeeper{})
	cases := map[string]struct {
		reason  string
		who     string
		restart bool
		change  nf.Kind // of the error; Internal: none
		preview nf.Kind
		users   []string // of the preview
		hidden  int
	}{
		"Admin":        {reason: "the network is its own; instances of others are counted", who: "admin-a", users: []string{accesstest.ProjectA}, hidden: 1},
		"AdminRestart": {reason: "an instance of another project would be restarted", who: "admin-a", restart: true, change: nf.Forbidden, preview: nf.Forbidden},
		"All":          {reason: "every instance may be restarted", who: "admin-all", restart: true, users: []string{accesstest.ProjectA, accesstest.ProjectB}},
		"Viewer":       {reason: "reading is enough for a dry run", who: "viewer-a-east", change: nf.Forbidden, users: []string{accesstest.ProjectA}, hidden: 1},
		"Stranger":     {reason: "the network does not exist for others", who: "operator-b", change: nf.NotFound, preview: nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, req := h.as(t, tc.who), nf.SharedChangeRequest{Restart: tc.restart}
			if _, err := networks.Change(ctx, "east.oam", req); refusal(err) != tc.change {
				t.Errorf("%s: the change: %v", tc.reason, err)
			}
			p, err := networks.PreviewChange(ctx, "east.oam", req)
			if refusal(err) != tc.preview {
				t.Errorf("%s: the preview: %v", tc.reason, err)
			}
			var users []string
			for _, u := range p.Users {
				users = append(users, u.Scope.Project)
			}
			if tc.preview == nf.Internal && (!slices.Equal(users, tc.users) || p.Hidden != tc.hidden) {
				t.Errorf("%s: the preview shows %v and hides %d", tc.reason, users, p.Hidden)
			}
		})
	}
}

// TestSharedPreviewFails has a dry run fail because of an instance. The error names the
// instance only to an identity that may see it. No identity gets a part of the preview.
func TestSharedPreviewFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := vnf(accesstest.ProjectB, accesstest.East)
	fail := nf.E(nf.Conflict, "change", "network east.oam", nf.Errorf("its address is that of %s", nf.Mention(id)))
	networks := access.NewNetworks(h.Guarded, linkKeeper{fail})
	for who, named := range map[string]bool{"admin-all": true, "admin-a": false, "viewer-a-east": false} {
		p, err := networks.PreviewChange(h.as(t, who), "east.oam", nf.SharedChangeRequest{})
		if nf.KindOf(err) != nf.Conflict || strings.Contains(err.Error(), id) != named || !named && !strings.Contains(err.Error(), hiddenMention) {
			t.Errorf("%s gets the error %v", who, err)
		}
		if len(p.Users) > 0 || p.Hidden > 0 {
			t.Errorf("%s gets a part of the preview: %+v", who, p)
		}
	}
}

func refusal(err error) nf.Kind {
	if err == nil {
		return nf.Internal
	}
	return nf.KindOf(err)
}
