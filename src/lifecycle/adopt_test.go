package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestAdopt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		running("db", "web")(t, s, e)
		op, err := adopt("early.e_db_web-absent")(t.Context(), e, nf.RequestKey{})
		if err != nil {
			t.Fatal(err)
		}
		end := e.end(t, op)
		if end.State != nf.Succeeded || end.Applied.IsZero() {
			t.Fatalf("it ended %s: %+v", end.State, end.Failure)
		}
		if diff := cmp.Diff([]string{"adopt", "adopt"}, s.did()); diff != "" {
			t.Errorf("nothing else is done to the region than for the objects and for what the hook has left (-want +got)\n%s", diff)
		}
		in := e.only(t.Context())
		if in.State != nf.Ready || in.Revision != 1 || !in.Adopted || len(in.Inventory) != 3 {
			t.Errorf("the instance is %+v", in)
		}
		if diff := cmp.Diff(map[string]string{"db": "was", "web": "was"}, s.sizes()); diff != "" {
			t.Errorf("what runs is as it was (-want +got)\n%s", diff)
		}
		if op, err = e.Upgrade(t.Context(), in.ID, change("db_web-absent", "xl")); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if diff := cmp.Diff(map[string]string{"db": "xl", "web": "xl", "absent": "xl"}, s.sizes()); diff != "" {
			t.Errorf("from then on it is an instance like any (-want +got)\n%s", diff)
		}
		if op, err = e.Terminate(t.Context(), in.ID, nf.TerminateRequest{}); err != nil {
			t.Fatal(err)
		}
		if e.end(t, op); len(s.cluster.objects) != 0 {
			t.Errorf("%d objects outlive it", len(s.cluster.objects))
		}
	})
}

func TestAdoptionThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		running("db", "web", "!theirs")(t, s, e)
		op, err := adopt("db_web-theirs")(t.Context(), e, nf.RequestKey{})
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.OperationFailed {
			t.Errorf("it ended %s", end.State)
		}
		if all := instances(t, e); len(all) != 0 {
			t.Errorf("it left %+v", all)
		}
		for key, o := range s.cluster.objects {
			if o.owner.ID != "" {
				t.Errorf("%s belongs to %s still", key, o.owner)
			}
		}
		if len(s.cluster.objects) != 3 {
			t.Errorf("%d objects are left of three", len(s.cluster.objects))
		}
		s.cluster.before = nil
		if _, err := adopt("db_web-theirs")(t.Context(), e, nf.RequestKey{}); nf.KindOf(err) != nf.Conflict {
			t.Errorf("what is seen to be somebody else's is refused at once: %v", err)
		}
	})
}

// TestAdoptionOfWhatBearsTheLabel keeps the label on pod templates that have it:
// to take it off would restart their pods with the next change.
func TestAdoptionOfWhatBearsTheLabel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		claim  nf.AdoptionSelector
		want   string
	}{
		"Labelled": {"whose pods bear the label keep it", nf.AdoptionSelector{Labels: map[string]string{nf.OwnerLabel: "vnf-7"}}, "vnf-7"},
		"Released": {"whose pods do not get none", nf.AdoptionSelector{Labels: map[string]string{"mark": "x"}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				op, err := e.Adopt(t.Context(), nf.AdoptRequest{Selector: tc.claim, InstantiateRequest: nf.InstantiateRequest{
					ID: "vnf-7", Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web"},
				}})
				if err != nil {
					t.Fatal(err)
				}
				e.end(t, op)
				plan, err := e.Plan(t.Context(), "vnf-7")
				if err != nil {
					t.Fatal(err)
				}
				for _, obj := range plan.Objects() {
					label, _, _ := unstructured.NestedString(obj.Object, "spec", "template", "metadata", "labels", nf.OwnerLabel)
					if label != tc.want || obj.GetLabels()[nf.OwnerLabel] != "vnf-7" {
						t.Errorf("%s: the template's label is %q", tc.reason, label)
					}
				}
			})
		})
	}
}

// TestUpgradeOfAdoptedJob upgrades an adopted instance with a Job, whose template cannot be
// changed: it gets no label. The template of a new Job, and that of a Deployment, get one.
func TestUpgradeOfAdoptedJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newSite(t).start()
		op, err := e.Adopt(t.Context(), nf.AdoptRequest{Selector: nf.AdoptionSelector{Labels: map[string]string{"mark": "x"}}, InstantiateRequest: nf.InstantiateRequest{
			ID: "vnf-7", Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "job.old-pods.web"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		for _, pkg := range []string{"job.old-pods.web-job.new", "job.old-pods.web-job.new_db"} { // twice: the plan in force differs
			if op := e.upgrade(t, "vnf-7", change(pkg, "s")); op.State != nf.Succeeded {
				t.Fatalf("%s %+v", op.State, op.Failure)
			}
			plan, err := e.Plan(t.Context(), "vnf-7")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, obj := range plan.Objects() {
				if _, has := obj.Object["spec"]; has {
					got[obj.GetName()], _, _ = unstructured.NestedString(obj.Object, "spec", "template", "metadata", "labels", nf.OwnerLabel)
				}
				if obj.GetLabels()[nf.OwnerLabel] != "vnf-7" {
					t.Errorf("%s has no owner", obj.GetName())
				}
			}
			if diff := cmp.Diff(map[string]string{"old": "", "web": "vnf-7", "new": "vnf-7"}, got); diff != "" {
				t.Errorf("the labels of the templates after an upgrade to %s (-want +got):\n%s", pkg, diff)
			}
		}
	})
}
