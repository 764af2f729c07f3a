package access_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// deadLetter is a dead letter. Its id is that of its instance in the subscription.
type deadLetter string

// shelf keeps dead letters of an instance in each of two projects, of a moved
// instance and of a deleted one. It is a source of charts, too.
type shelf struct{ done []string }

func (s *shelf) DeadLetters(context.Context) ([]deadLetter, error) {
	return []deadLetter{"vnf-a-east", "vnf-b-west", "moved", "gone"}, nil
}

func (s *shelf) Resend(_ context.Context, id string) (deadLetter, error) {
	s.done = append(s.done, "resend "+id)
	return deadLetter(id), nil
}

func (s *shelf) Discard(_ context.Context, id string) error {
	s.done = append(s.done, "discard "+id)
	return nil
}

func (s *shelf) Names(l deadLetter) (id, owner string) { return string(l), string(l) }

func (s *shelf) Engine(_ context.Context, l deadLetter) (string, error) {
	if l == "moved" {
		return "vnf-a-west", nil
	}
	return string(l), nil
}

func (s *shelf) Fetch(_ context.Context, ref, _ string) (string, error) {
	s.done = append(s.done, "fetch "+ref)
	return "from " + ref, nil
}

func TestGuardedDeadLetters(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		listed      []deadLetter
		kinds       map[string]nf.Kind // of Resend and Discard, by id; Internal: allowed
	}{
		"Tenant": {
			"an identity sees the dead letters of its instances, even of moved ones", "admin-a", []deadLetter{"vnf-a-east", "moved"},
			map[string]nf.Kind{"vnf-a-east": nf.Internal, "moved": nf.Internal, "vnf-b-west": nf.NotFound, "gone": nf.NotFound, "absent": nf.NotFound},
		},
		"Viewer": {
			"instance:read is not enough to resend or delete a dead letter", "viewer-a-east", []deadLetter{"vnf-a-east"},
			map[string]nf.Kind{"vnf-a-east": nf.Forbidden, "moved": nf.NotFound, "gone": nf.NotFound, "absent": nf.NotFound},
		},
		"Store": {
			"store:admin gives access to dead letters of deleted instances", "admin-all", []deadLetter{"vnf-a-east", "vnf-b-west", "moved", "gone"},
			map[string]nf.Kind{"vnf-b-west": nf.Internal, "gone": nf.Internal, "absent": nf.NotFound},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			deadLetters, ctx := access.NewDeadLetters(h.Guarded, s), h.as(t, tc.who)
			listed, err := deadLetters.DeadLetters(ctx)
			if diff := cmp.Diff(tc.listed, listed); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			for id, kind := range tc.kinds {
				s.done = nil
				_, resent := deadLetters.Resend(ctx, id)
				discarded := deadLetters.Discard(ctx, id)
				for _, err := range []error{resent, discarded} {
					if (err == nil) != (kind == nf.Internal) || err != nil && nf.KindOf(err) != kind {
						t.Errorf("%s: %s: %v, want %s", tc.reason, id, err, kind)
					}
				}
				if want := map[bool]int{true: 2}[kind == nf.Internal]; len(s.done) != want {
					t.Errorf("%s: %s: these calls were made: %v", tc.reason, id, s.done)
				}
			}
		})
	}
	deadLetters := access.NewDeadLetters(h.Guarded, &shelf{})
	if _, err := deadLetters.DeadLetters(t.Context()); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("a list without credentials: %v", err)
	}
}

func TestGuardedCharts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cases := map[string]struct {
		reason, who string
		chart       nf.Kind // Internal: allowed
	}{
		"Operator":  {"package:write in the project", "operator-a-east", nf.Internal},
		"Other":     {"package:write of another project", "operator-b", nf.Forbidden},
		"Viewer":    {"package:read is not enough to fetch a chart", "viewer-all", nf.Forbidden},
		"Admin":     {"package:write everywhere", "admin-all", nf.Internal},
		"Anonymous": {"a request without credentials", accesstest.Anonymous, nf.Unauthenticated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, ctx := &shelf{}, h.as(t, tc.who)
			_, fetched := access.NewCharts(h.Guarded, s).Fetch(ctx, accesstest.ProjectA, "chart", "")
			if allowed := tc.chart == nf.Internal; allowed != (len(s.done) == 1) {
				t.Errorf("%s: these charts were fetched: %v", tc.reason, s.done)
			}
			if (fetched == nil) != (tc.chart == nf.Internal) || nf.KindOf(fetched) != tc.chart {
				t.Errorf("%s: %v, want %s", tc.reason, fetched, tc.chart)
			}
		})
	}
}

// TestBundlesAreAudited checks that the audit log names a bundle only by valid ids.
func TestBundlesAreAudited(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, trail := nf.WithTrail(h.as(t, "admin-all"))
	if _, err := access.NewBundles(h.Guarded, "", "", "").Write(ctx, "firewall", "not/an id"); err != nil {
		t.Fatal(err)
	}
	var entry nf.AuditEntry
	trail.Tell(&entry)
	want := nf.AuditEntry{Permission: nf.WritePackage, Project: nf.DefaultProject, Subjects: []string{"firewall"}}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("the audit entry has only ids (-want +got):\n%s", diff)
	}
}
