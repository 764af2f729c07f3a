package access_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// make makes the call of a case.
func (h *house) make(ctx context.Context, c accesstest.Case) error {
	id, operation := vnf(c.Project, c.Region), op(c.Project, c.Region)
	edit := nf.UpgradeRequest{Edit: func(*nf.Spec) error { return nil }}
	instance := nf.InstantiateRequest{Spec: nf.Spec{Package: pkg(c.Project)}, Project: c.Project, Region: c.Region}
	second := func(_ any, err error) error { return err }
	calls := map[string]func() error{
		"Region":             func() error { return second(h.Regions.Region(ctx, c.Region)) },
		"RegionCapabilities": func() error { return second(h.Regions.RegionCapabilities(ctx, c.Region, false)) },
		"UpdateRegion": func() error {
			return second(h.Regions.UpdateRegion(ctx, c.Region, func(*nf.Region) error { return nil }))
		},
		"RemoveRegion": func() error { return h.Regions.RemoveRegion(ctx, c.Region) },
		"Enlist":       func() error { return second(h.Regions.Enlist(ctx, nf.Region{ID: c.Region})) },
		"Register":     func() error { return second(h.Regions.Register(ctx, nf.Region{ID: c.Region})) },
		"Package":      func() error { return second(h.Packages.Package(ctx, pkg(c.Project))) },
		"Content": func() error {
			_, _, err := h.Packages.Content(ctx, pkg(c.Project))
			return err
		},
		"RemovePackage": func() error { return h.Packages.RemovePackage(ctx, pkg(c.Project)) },
		"UpdatePackage": func() error {
			return second(h.Packages.UpdatePackage(ctx, pkg(c.Project), func(*nf.Package) error { return nil }))
		},
		"CreatePackage": func() error { return second(h.Packages.CreatePackage(ctx, nf.Package{Project: c.Project})) },
		"Upload": func() error {
			_, _, err := h.Packages.Upload(ctx, nf.Package{Project: c.Project}, strings.NewReader(""))
			return err
		},
		"Instance":        func() error { return second(h.Instances.Instance(ctx, id)) },
		"Revisions":       func() error { return second(h.Instances.Revisions(ctx, id)) },
		"Revision":        func() error { return second(h.Instances.Revision(ctx, id, 1)) },
		"Health":          func() error { return second(h.Instances.Health(ctx, id)) },
		"PreviewUpgrade":  func() error { return second(h.Instances.PreviewUpgrade(ctx, id, edit)) },
		"PreviewRollback": func() error { return second(h.Instances.PreviewRollback(ctx, id, nf.RollbackRequest{})) }, "PreviewTerminate": func() error { return second(h.Instances.PreviewTerminate(ctx, id, nf.TerminateRequest{})) },
		"Upgrade":   func() error { return second(h.Instances.Upgrade(ctx, id, edit)) },
		"Rollback":  func() error { return second(h.Instances.Rollback(ctx, id, nf.RollbackRequest{})) },
		"Configure": func() error { return second(h.Instances.Configure(ctx, id, nf.ConfigureRequest{Edit: edit.Edit})) },
		"PreviewConfigure": func() error {
			return second(h.Instances.PreviewConfigure(ctx, id, nf.ConfigureRequest{Edit: edit.Edit}))
		},
		"Test":        func() error { return second(h.Instances.Test(ctx, id, nf.TestRequest{})) },
		"Act":         func() error { return second(h.Instances.Act(ctx, id, nf.ActRequest{})) },
		"PreviewAct":  func() error { return second(h.Instances.PreviewAct(ctx, id, nf.ActRequest{})) },
		"PreviewTest": func() error { return second(h.Instances.PreviewTest(ctx, id, nf.TestRequest{})) },
		"PreviewAdopt": func() error {
			return second(h.Instances.PreviewAdopt(ctx, nf.AdoptRequest{InstantiateRequest: instance}))
		},
		"PreviewRetry":       func() error { return second(h.Operations.PreviewRetry(ctx, operation, nf.Options{})) },
		"PreviewUndo":        func() error { return second(h.Operations.PreviewUndo(ctx, operation, nf.Options{})) },
		"Terminate":          func() error { return second(h.Instances.Terminate(ctx, id, nf.TerminateRequest{})) },
		"Operation":          func() error { return second(h.Operations.Operation(ctx, operation)) },
		"Changes":            func() error { return second(h.Operations.Changes(ctx, operation)) },
		"Retry":              func() error { return second(h.Operations.Retry(ctx, operation, nf.Options{})) },
		"Undo":               func() error { return second(h.Operations.Undo(ctx, operation, nf.Options{})) },
		"Cancel":             func() error { return second(h.Operations.Cancel(ctx, operation)) },
		"Instantiate":        func() error { return second(h.Instances.Instantiate(ctx, instance)) },
		"Adopt":              func() error { return second(h.Instances.Adopt(ctx, nf.AdoptRequest{InstantiateRequest: instance})) },
		"PreviewInstantiate": func() error { return second(h.Instances.PreviewInstantiate(ctx, instance)) },
		"Administer":         func() error { return h.May(ctx, nf.AdministerStore, nf.Scope{}) },
		"Follow": func() error {
			for _, err := range h.Operations.Follow(ctx, operation) {
				return err
			}
			return errors.New("nothing followed")
		},
	}
	return calls[c.Call.Name]()
}

var kinds = map[accesstest.Outcome]nf.Kind{
	accesstest.Hidden: nf.NotFound, accesstest.Forbidden: nf.Forbidden, accesstest.Unauthenticated: nf.Unauthenticated,
}

// TestMatrix makes every call as every identity on every object.
func TestMatrix(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, c := range accesstest.Matrix() {
		h.world.done = nil
		err := h.make(h.as(t, c.Who), c)
		if c.Want == accesstest.Allowed {
			if err != nil {
				t.Errorf("%s: %v", c, err)
			}
			continue
		}
		if err == nil || nf.KindOf(err) != kinds[c.Want] {
			t.Errorf("%s: %v", c, err)
		}
		if len(h.world.done) > 0 {
			t.Errorf("%s: but it was done: %v", c, h.world.done)
		}
		if c.Want == accesstest.Forbidden && !strings.Contains(err.Error(), string(c.Call.Need)) {
			t.Errorf("%s: the refusal does not name the permission: %v", c, err)
		}
	}
}

// TestHiddenIsAbsent compares hidden objects with objects that do not exist: no
// text may distinguish them.
func TestHiddenIsAbsent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, who := range accesstest.People() {
		if who == accesstest.Anonymous {
			continue
		}
		ctx := h.as(t, who)
		for _, call := range accesstest.Calls() {
			if call.Name == "Register" || call.Name == "Enlist" || call.Name == "Upload" || call.Name == "CreatePackage" {
				continue // they create an object
			}
			for _, key := range []string{"", "some-key"} {
				there := accesstest.Case{Who: who, Call: call, Project: "b", Region: "west"}
				gone := accesstest.Case{Who: who, Call: call, Project: "x", Region: "west"}
				hidden := !accesstest.May(who, nf.ReadInstance, nf.Scope{Project: "b", Region: "west"}) && !accesstest.May(who, nf.ReadPackage, nf.Scope{Project: "b"})
				if !hidden || call.Of != accesstest.Package && call.Of != accesstest.Instance {
					continue
				}
				was, is := h.keyed(ctx, there, key), h.keyed(ctx, gone, key)
				if was == nil || is == nil {
					t.Fatalf("%s by %s was granted: %v, %v", call.Name, who, was, is)
				}
				if got, want := strings.ReplaceAll(was.Error(), "-b", "-x"), is.Error(); got != want || nf.KindOf(was) != nf.KindOf(is) {
					t.Errorf("%s by %s (key %q): a hidden object gives %q, an absent one %q", call.Name, who, key, got, want)
				}
			}
		}
	}
}

// TestInstantiateHides does the same for the parts of a new instance.
func TestInstantiateHides(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	request := func(pkg, region string) nf.InstantiateRequest {
		return nf.InstantiateRequest{Spec: nf.Spec{Package: pkg}, Project: "a", Region: region}
	}
	cases := map[string]struct {
		reason       string
		who          string
		hidden, gone nf.InstantiateRequest
		kind         nf.Kind
	}{
		"Package":        {"a package of another project is reported as absent", "operator-a-east", request("pkg-b", "east"), request("pkg-x", "east"), nf.NotFound},
		"Region":         {"a region without a grant is denied", "operator-a-east", request("pkg-a", "west"), request("pkg-a", "xest"), nf.Forbidden},
		"NotAllowed":     {"a caller that may not instantiate is denied before the package is read", "viewer-a-east", request("pkg-b", "east"), request("pkg-x", "east"), nf.Forbidden},
		"PackageByOwner": {"a custom role hides packages, too", "starter-a", request("pkg-b", "west"), request("pkg-x", "west"), nf.NotFound},
	}
	for name, c := range cases {
		for _, key := range []string{"", "k"} {
			for what, call := range map[string]func(context.Context, nf.InstantiateRequest) error{
				"Instantiate": func(ctx context.Context, r nf.InstantiateRequest) error {
					_, err := h.Instances.Instantiate(ctx, r)
					return err
				},
				"Preview": func(ctx context.Context, r nf.InstantiateRequest) error {
					_, err := h.Instances.PreviewInstantiate(ctx, r)
					return err
				},
			} {
				c.hidden.Key.Key, c.gone.Key.Key = key, key
				ctx := h.as(t, c.who)
				was, is := call(ctx, c.hidden), call(ctx, c.gone)
				if was == nil || is == nil || what == "Instantiate" && nf.KindOf(was) != c.kind {
					t.Fatalf("%s: %s: %s: %v, %v", name, what, c.reason, was, is)
				}
				said := strings.NewReplacer("pkg-b", "pkg-x", "west", "xest").Replace(was.Error())
				if want := strings.ReplaceAll(is.Error(), "west", "xest"); said != want || nf.KindOf(was) != nf.KindOf(is) {
					t.Errorf("%s: %s: %s: hidden %q, absent %q", name, what, c.reason, said, want)
				}
			}
		}
	}
	if len(h.world.done) > 0 {
		t.Errorf("but this was done: %v", h.world.done)
	}
}

// TestRepeat checks that a request can be repeated after its object was deleted,
// but only by the caller that made it.
func TestRepeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mine, theirs := h.as(t, "operator-a-east"), h.as(t, "operator-b")
	h.world.keyed["token:operator-a-east/k"] = nf.Operation{ID: "the-first", Project: "a", Region: "east"}
	h.world.keyed["token:operator-a-east/elsewhere"] = nf.Operation{ID: "the-other", Project: "b", Region: "east"}
	o := nf.Options{Key: nf.RequestKey{Key: "k", Client: "token:operator-a-east"}}
	calls := map[string]func(context.Context, nf.Options) (nf.Operation, error){
		"Terminate": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Terminate(ctx, "gone", nf.TerminateRequest{Options: o})
		},
		"Upgrade": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Upgrade(ctx, "gone", nf.UpgradeRequest{Options: o})
		},
		"Rollback": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Rollback(ctx, "gone", nf.RollbackRequest{Options: o})
		},
		"Configure": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Configure(ctx, "gone", nf.ConfigureRequest{Options: o})
		},
		"Test": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Test(ctx, "gone", nf.TestRequest{Options: o})
		},
		"Act": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Instances.Act(ctx, "gone", nf.ActRequest{Options: o})
		},
		"Retry": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Operations.Retry(ctx, "gone", o)
		},
		"Undo": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			return h.Operations.Undo(ctx, "gone", o)
		},
		"Instantiate": func(ctx context.Context, o nf.Options) (nf.Operation, error) {
			project := "a"
			if id, _ := nf.IdentityOf(ctx); id.Name == "operator-b" {
				project = "b"
			}
			return h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "gone"}, Project: project, Region: "east", Options: o})
		},
	}
	for name, call := range calls {
		if op, err := call(mine, o); err != nil || op.ID != "the-first" {
			t.Errorf("%s: repeated by the same caller: %v, %v", name, op.ID, err)
		}
		if op, err := call(theirs, o); nf.KindOf(err) != nf.NotFound {
			t.Errorf("%s: the key of another caller returns its operation: %v, %v", name, op.ID, err)
		}
		elsewhere := nf.Options{Key: nf.RequestKey{Key: "elsewhere"}}
		if op, err := call(mine, elsewhere); nf.KindOf(err) != nf.NotFound {
			t.Errorf("%s: a grant that has ended shows an operation: %v, %v", name, op.ID, err)
		}
	}
	h.world.fail = &nf.Error{Kind: nf.Busy, Op: "repeat", Subject: "it", Reason: "idempotency-key-reused"}
	h.world.lenient = true
	for name, call := range calls {
		if _, err := call(mine, nf.Options{Key: nf.RequestKey{Key: "new"}}); nf.KindOf(err) != nf.Busy {
			t.Errorf("%s: the error for the key is lost: %v", name, err)
		}
	}
	if len(h.world.done) > 0 {
		t.Errorf("a repeated request has started an operation: %v", h.world.done)
	}
}

func TestKeysAreTheIdentitys(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := h.as(t, "admin-all")
	forged := nf.RequestKey{Key: "k", Client: "user:another"}
	calls := map[string]func() error{
		"Terminate": func() error {
			_, err := h.Instances.Terminate(ctx, "vnf-a-east", nf.TerminateRequest{Options: nf.Options{Key: forged}})
			return err
		},
		"Register": func() error { _, err := h.Regions.Register(ctx, nf.Region{ID: "north", Request: forged}); return err },
		"Upload": func() error {
			_, _, err := h.Packages.Upload(ctx, nf.Package{Request: forged}, strings.NewReader(""))
			return err
		},
	}
	for name, call := range calls {
		if err := call(); err != nil || h.world.client != "token:admin-all" {
			t.Errorf("%s: the key is that of %q, %v", name, h.world.client, err)
		}
	}
}

func TestUpgradeToAnotherPackage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	to := func(id string) nf.UpgradeRequest {
		return nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Package = id; return nil }}
	}
	cases := map[string]struct {
		reason string
		who    string
		to     string
		kind   nf.Kind // Internal: allowed
	}{
		"Same":    {"an upgrade to the same package does not require package:read", "changer-a", "pkg-a", nf.Internal},
		"Hidden":  {"a hidden package is reported as absent", "operator-a-east", "pkg-b", nf.NotFound},
		"Absent":  {"a missing package is reported as absent", "operator-a-east", "pkg-x", nf.NotFound},
		"Visible": {"a readable package can be used", "operator-all", "pkg-b", nf.Internal},
	}
	for name, c := range cases {
		ctx := h.as(t, c.who)
		_, err := h.Instances.Upgrade(ctx, "vnf-a-east", to(c.to))
		_, preview := h.Instances.PreviewUpgrade(ctx, "vnf-a-east", to(c.to))
		if c.kind == nf.Internal && errors.Join(err, preview) != nil || c.kind != nf.Internal && (nf.KindOf(err) != c.kind || nf.KindOf(preview) != c.kind) {
			t.Errorf("%s: %s: %v, preview %v", name, c.reason, err, preview)
		}
		if c.kind == nf.Internal && h.world.edit.Package != c.to {
			t.Errorf("%s: the edit is lost: %+v", name, h.world.edit)
		}
	}
}

// TestFollowEndsWithTheGrant revokes a grant while an operation is followed.
func TestFollowEndsWithTheGrant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		follow func(ctx context.Context, h *house) iter.Seq2[bool, error] // yields whether an update is empty
	}{
		"Instance": {"of a VNF instance", func(ctx context.Context, h *house) iter.Seq2[bool, error] {
			return empty(h.Operations.Follow(ctx, "op-a-east"))
		}},
		"Site": {"of a site", func(ctx context.Context, h *house) iter.Seq2[bool, error] {
			return empty(access.NewSiteOperations(h.Guarded, sites{world: h.world}).Follow(ctx, "s", "o", 0))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, file := newClock(), accesstest.File(t)
			rules, err := access.New(access.Config{File: file, Clock: c.Now})
			if err != nil {
				t.Fatal(err)
			}
			h := guarded(t, authorizerOf(t, rules))
			ctx, updates := nf.WithIdentity(t.Context(), nf.Identity{Kind: "token", Name: "viewer-a"}), 0
			for empty, err := range tc.follow(ctx, h) {
				if updates++; updates == 1 && (err != nil || empty) {
					t.Fatalf("%s: with the grant: %v, empty: %t", tc.reason, err, empty)
				}
				if updates > 1 && (nf.KindOf(err) != nf.NotFound || !empty) || updates > 2 {
					t.Fatalf("%s: after the end of the grant: update %d, %v, empty: %t", tc.reason, updates, err, empty)
				}
				write(t, file, strings.ReplaceAll(accesstest.YAML(), "'token:viewer-a'", "'token:viewer-all'"))
				c.pass(time.Second)
			}
			if updates != 2 {
				t.Errorf("%s: %d updates were yielded, want one and the error", tc.reason, updates)
			}
		})
	}
}

// empty yields whether each item is the zero value.
func empty[T any](items iter.Seq2[T, error]) iter.Seq2[bool, error] {
	return func(yield func(bool, error) bool) {
		for item, err := range items {
			if !yield(reflect.ValueOf(item).IsZero(), err) {
				return
			}
		}
	}
}

// TestRecoveryPermissions checks that retrying and undoing an operation require
// the permission for the resulting change.
func TestRecoveryPermissions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, c := range []struct {
		reason, who, operation string
		call                   func(context.Context, string, nf.Options) (nf.Operation, error)
		granted                bool
	}{
		{"a retry of a termination requires instance:terminate", "changer-a", "op-end-a-east", h.Operations.Retry, false},
		{"a retry of an instantiation requires instance:instantiate", "changer-a", "op-born-a-east", h.Operations.Retry, false},
		{"an undo of an instantiation requires instance:terminate", "changer-a", "op-born-a-east", h.Operations.Undo, false},
		{"a retry of a change requires only instance:change", "changer-a", "op-a-east", h.Operations.Retry, true},
		{"an operator may retry a termination", "operator-a-east", "op-end-a-east", h.Operations.Retry, true},
		{"an operator may undo an instantiation", "operator-a-east", "op-born-a-east", h.Operations.Undo, true},
	} {
		_, err := c.call(h.as(t, c.who), c.operation, nf.Options{})
		if c.granted != (err == nil) || !c.granted && nf.KindOf(err) != nf.Forbidden {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
