package volume_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/volume"
)

// TestWrongSpecs refuses specs, with the field that is wrong, before anything is
// touched.
func TestWrongSpecs(t *testing.T) {
	t.Parallel()
	source := func(text string) string { return `{"size":"1Gi","source":` + text + `}` }
	with := func(text string) string { return strings.TrimSuffix(nfs, "}") + "," + text + "}" }
	csi := func(text string) string { return source(`{"csi":{` + text + `}}`) }
	cases := map[string]struct {
		spec  string
		kind  nf.Kind
		field string
	}{
		"no source":           {`{"size":"1Gi"}`, nf.Invalid, "source"},
		"two sources":         {source(`{"nfs":{"server":"a","path":"/b"},"adopt":{"pv":"x"}}`), nf.Invalid, "source"},
		"no size":             {`{"source":{"nfs":{"server":"a","path":"/b"}}}`, nf.Invalid, "size"},
		"size":                {strings.Replace(nfs, "10Gi", "much", 1), nf.Invalid, "size"},
		"negative size":       {strings.Replace(nfs, "10Gi", "-1Gi", 1), nf.Invalid, "size"},
		"no server":           {source(`{"nfs":{"server":"","path":"/b"}}`), nf.Invalid, "source.nfs.server"},
		"server with a path":  {source(`{"nfs":{"server":"a/b","path":"/b"}}`), nf.Invalid, "source.nfs.server"},
		"relative path":       {source(`{"nfs":{"server":"a","path":"b"}}`), nf.Invalid, "source.nfs.path"},
		"path upwards":        {source(`{"local":{"node":"n1","path":"/a/../b"}}`), nf.Invalid, "source.local.path"},
		"no path":             {source(`{"host_path":{}}`), nf.Invalid, "source.host_path.path"},
		"local without node":  {source(`{"local":{"path":"/a"}}`), nf.Invalid, "source.local.node"},
		"unknown node":        {source(`{"local":{"node":"n9","path":"/a"}}`), nf.Invalid, "source.local.node"},
		"driver":              {csi(`"driver":"a b","volume_handle":"x"`), nf.Invalid, "source.csi.driver"},
		"no handle":           {csi(`"driver":"a"`), nf.Invalid, "source.csi.volume_handle"},
		"secret":              {csi(`"driver":"a","volume_handle":"x","secret":{"namespace":"a"}`), nf.Invalid, "source.csi.secret.name"},
		"fs_type of a block":  {strings.Replace(csi(`"driver":"a","volume_handle":"x","fs_type":"ext4"`), "{", `{"mode":"Block",`, 1), nf.Invalid, "source.csi.fs_type"},
		"no class":            {source(`{"class":{"name":""}}`), nf.Invalid, "source.class.name"},
		"unknown class":       {source(`{"class":{"name":"slow"}}`), nf.Invalid, "source.class.name"},
		"class without disks": {source(`{"class":{"name":"static"}}`), nf.Invalid, "source.class.name"},
		"late class":          {source(`{"class":{"name":"late"}}`), nf.Invalid, "source.class.node"},
		"no volume":           {source(`{"adopt":{"pv":""}}`), nf.Invalid, "source.adopt.pv"},
		"unknown volume":      {source(`{"adopt":{"pv":"x"}}`), nf.Invalid, "source.adopt.pv"},
		"access mode":         {with(`"access_modes":["ReadWriteOnce","All"]`), nf.Invalid, "access_modes[1]"},
		"repeated mode":       {with(`"access_modes":["ReadWriteOnce","ReadWriteOnce"]`), nf.Invalid, "access_modes[1]"},
		"pod mode":            {with(`"access_modes":["ReadWriteOncePod","ReadOnlyMany"]`), nf.Invalid, "access_modes[0]"},
		"mode":                {with(`"mode":"Tape"`), nf.Invalid, "mode"},
		"block directory":     {with(`"mode":"Block"`), nf.Invalid, "mode"},
		"retention":           {with(`"retention":"maybe"`), nf.Invalid, "retention"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				all, _, _ := w.start(t)
				_, err := all.Create(t.Context(), request(tc.spec))
				if v := nf.ViolationsOf(err); nf.KindOf(err) != tc.kind || len(v) != 1 || v[0].Field != tc.field {
					t.Errorf("%v: %+v, want %s", err, v, tc.field)
				}
				if _, err := all.Get(t.Context(), data); nf.KindOf(err) != nf.NotFound || len(w.left()) > 0 {
					t.Errorf("the volume was recorded: %v, %v", err, w.left())
				}
			})
		})
	}
}

// TestHostPath permits paths of nodes only in a lab.
func TestHostPath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		all, _, _ := w.start(t)
		const spec = `{"source":{"host_path":{"path":"/srv"}},"size":"1Gi"}`
		_, err := all.Create(t.Context(), request(spec, func(r *nf.SharedRequest) { r.Resource.Region = "plain" }))
		if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Forbidden || len(v) != 1 || v[0].Field != "source.host_path" {
			t.Errorf("in a region that is not a lab: %v", err)
		}
		if op := w.create(t, all, request(spec)); op.State != nf.Succeeded {
			t.Errorf("in a lab, the operation is %s: %+v", op.State, op.Failure)
		}
	})
}

// TestRebinds binds a volume to the claims of two instances, one after the other, in
// different namespaces.
func TestRebinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		all, kind, _ := w.start(t)
		w.create(t, all, request(nfs))
		v, err := all.Get(t.Context(), data)
		must(t, err)
		var seen []string
		for _, namespace := range []string{"first", "second"} {
			seen = append(seen, w.left()...)
			must(t, kind.Bind(t.Context(), always, v, namespace, "db"))
			must(t, kind.Bind(t.Context(), always, v, namespace, "db")) // a repetition
			w.claim(namespace, "db")
			must(t, kind.Bind(t.Context(), always, v, namespace, "db"))
			must(t, kind.Unbind(t.Context(), always, v, namespace, "db")) // it is bound, so nothing happens
			seen = append(seen, w.left()...)
			for _, err := range []error{kind.Bind(t.Context(), always, v, "third", "db"), second(kind.Claim(t.Context(), v, "third", "db"))} {
				if nf.KindOf(err) != nf.Conflict {
					t.Errorf("a bound volume is bound to another claim: %v", err)
				}
			}
			w.unclaim(namespace, "db") // as its namespace is deleted
			seen = append(seen, w.left()...)
			must(t, kind.Unbind(t.Context(), always, v, namespace, "db"))
		}
		const pv = "k8splugin-data Retain "
		want := []string{
			pv + "Available k8splugin-volumes/data of edge.data", "claim first/db", pv + "Bound first/db of edge.data", pv + "Released first/db of edge.data",
			pv + "Available k8splugin-volumes/data of edge.data", "claim second/db", pv + "Bound second/db of edge.data", pv + "Released second/db of edge.data",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("the region (-want +got):\n%s", diff)
		}
	})
}

func always(context.Context) error { return nil }

func second[T any](_ T, err error) error { return err }

// TestClaim says how a claim must be to bind a volume.
func TestClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		all, kind, _ := w.start(t)
		w.create(t, all, request(`{"source":{"class":{"name":"fast"}},"size":"10Gi"}`))
		v, err := all.Get(t.Context(), data)
		must(t, err)
		got, err := kind.Claim(t.Context(), v, "first", "db")
		must(t, err)
		pv := got.PV
		got.PV = ""
		if diff := cmp.Diff(nf.VolumeClaim{Class: "fast", Size: "10Gi", AccessModes: []string{"ReadWriteOnce"}, Mode: "Filesystem"}, got); diff != "" {
			t.Errorf("the claim (-want +got):\n%s", diff)
		}
		must(t, kind.Bind(t.Context(), always, v, "first", "db"))
		w.claim("first", "db")
		status, err := kind.Status(t.Context(), v)
		must(t, err)
		want := nf.VolumeStatus{PV: pv, Phase: "Bound", Size: "10Gi", Claim: nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "first", Name: "db"}}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("the status (-want +got):\n%s", diff)
		}
	})
}

// TestRemoval releases volumes: what remains in the region depends on their retention.
func TestRemoval(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		left   []string
		erased int
	}{
		"Retained":       {"the data stays, with its label", nfs, []string{"k8splugin-data Retain Available k8splugin-volumes/data"}, 0},
		"Deleted":        {"no driver deletes the directory", strings.TrimSuffix(nfs, "}") + `,"retention":"delete"}`, nil, 0},
		"Class":          {"a provisioned volume is retained, too", `{"source":{"class":{"name":"fast"}},"size":"1Gi"}`, []string{"pvc Retain Released k8splugin-volumes/data"}, 0},
		"Deleted class":  {"the driver deletes the data", `{"source":{"class":{"name":"fast"}},"size":"1Gi","retention":"delete"}`, nil, 1},
		"Deleted handle": {"the driver of a handle deletes the data", `{"source":{"csi":{"driver":"disks.example","volume_handle":"7"}},"size":"1Gi","retention":"delete"}`, nil, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				all, _, _ := w.start(t)
				if op := w.create(t, all, request(tc.spec)); op.State != nf.Succeeded {
					t.Fatalf("the creation is %s: %+v", op.State, op.Failure)
				}
				op, err := all.Release(t.Context(), data, nf.SharedReleaseRequest{Holder: "ann"})
				must(t, err)
				if op = w.end(t, op); op.State != nf.Succeeded || (len(op.Warnings) == 1) != (tc.left != nil) {
					t.Errorf("the removal is %s: %+v, %q", op.State, op.Failure, op.Warnings)
				}
				left := w.left()
				for i, line := range left {
					if name, rest, _ := strings.Cut(line, " "); strings.HasPrefix(name, "pvc-") {
						left[i] = "pvc " + rest
					}
				}
				if diff := cmp.Diff(tc.left, left); diff != "" || len(w.erased) != tc.erased {
					t.Errorf("%s: %d were erased (-want +got):\n%s", tc.reason, len(w.erased), diff)
				}
			})
		})
	}
}

// TestAdopt creates a volume from a PersistentVolume whose policy is Delete, and
// releases it.
func TestAdopt(t *testing.T) {
	existing := func(w *world, labels, annotations, claim map[string]any) {
		pv := map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": "old"},
			"spec": map[string]any{"capacity": map[string]any{"storage": "5Gi"}, "persistentVolumeReclaimPolicy": "Delete"},
		}
		merge(pv, map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": map[string]any{"claimRef": claim}})
		w.put(pv)
	}
	cases := map[string]struct {
		reason                     string
		labels, annotations, claim map[string]any
		spec                       string
		field                      string // that is refused
	}{
		"Free":     {reason: "it belongs to nothing", spec: `{"source":{"adopt":{"pv":"old"}}}`},
		"Size":     {reason: "the size is the volume's own", spec: `{"source":{"adopt":{"pv":"old"}},"size":"5Gi"}`},
		"Released": {reason: "the claim is gone", claim: map[string]any{"namespace": "x", "name": "gone", "uid": "1"}, spec: `{"source":{"adopt":{"pv":"old"}}}`},
		"Reserved": {reason: "it is reserved for a claim that does not exist", claim: map[string]any{"namespace": nf.VolumeNamespace, "name": "earlier"}, spec: `{"source":{"adopt":{"pv":"old"}}}`},
		"Larger":   {reason: "it has another size", spec: `{"source":{"adopt":{"pv":"old"}},"size":"6Gi"}`, field: "size"},
		"Owned":    {reason: "it belongs to another volume", labels: map[string]any{nf.SubjectLabel: "volume.edge.other"}, spec: `{"source":{"adopt":{"pv":"old"}}}`, field: "source.adopt.pv"},
		"Project":  {reason: "it was retained from another project", annotations: map[string]any{nf.ProjectAnnotation: "red"}, spec: `{"source":{"adopt":{"pv":"old"}}}`, field: "source.adopt.pv"},
		"Bound":    {reason: "a claim uses it", claim: map[string]any{"namespace": "x", "name": "used", "uid": "used"}, spec: `{"source":{"adopt":{"pv":"old"}}}`, field: "source.adopt.pv"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				all, kind, _ := w.start(t)
				existing(w, tc.labels, tc.annotations, tc.claim)
				w.put(map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": "x", "name": "used", "uid": "used"}})
				op, err := all.Create(t.Context(), request(tc.spec))
				if v := nf.ViolationsOf(err); tc.field != "" {
					if nf.KindOf(err) != nf.Conflict || len(v) != 1 || v[0].Field != tc.field {
						t.Errorf("%s: %v", tc.reason, err)
					}
					return
				}
				must(t, err)
				w.end(t, op)
				pv := w.objects[nf.Ref{Version: "v1", Kind: "PersistentVolume", Name: "old"}.Key()]
				if text(pv, "spec", "persistentVolumeReclaimPolicy") != "Retain" || ownerOf(pv).ID != data || len(w.erased) > 0 {
					t.Errorf("%s: %v; erased: %v", tc.reason, pv, w.erased)
				}
				if tc.claim["uid"] == nil && text(pv, "spec", "claimRef", "name") != "data" {
					t.Errorf("%s: others can bind it: %v", tc.reason, pv)
				}
				v, err := all.Get(t.Context(), data)
				must(t, err)
				must(t, kind.Bind(t.Context(), always, v, "first", "db"))
			})
		})
	}
}

// TestReservedByEarlier creates a volume of a class with the name of an earlier one, whose
// retained PersistentVolume is reserved for the same claim.
func TestReservedByEarlier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		all, _, _ := w.start(t)
		w.create(t, all, request(nfs))
		op, err := all.Release(t.Context(), data, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		w.end(t, op)
		op = w.create(t, all, request(`{"source":{"class":{"name":"fast"}},"size":"10Gi","retention":"delete"}`))
		if op.State != nf.OperationFailed || op.Failure.Kind != nf.Conflict {
			t.Errorf("the new volume has the data of the earlier one: %s, %+v", op.State, op.Failure)
		}
		if diff := cmp.Diff([]string{"k8splugin-data Retain Released k8splugin-volumes/data"}, w.left()); diff != "" || len(w.erased) > 0 {
			t.Errorf("%v were erased; the region (-want +got):\n%s", w.erased, diff)
		}
	})
}

// TestChange changes the size and the retention of volumes.
func TestChange(t *testing.T) {
	const class = `{"source":{"class":{"name":"fast"}},"size":"10Gi"}`
	cases := map[string]struct {
		reason string
		spec   string
		bound  bool
		edit   func(*nf.VolumeSpec)
		kind   nf.Kind
		field  string
		size   string // of the PersistentVolume, or the request of the claim
	}{
		"Static":    {"a directory has no size of its own", nfs, false, func(s *nf.VolumeSpec) { s.Size = "20Gi" }, 0, "", "20Gi"},
		"Retention": {"it concerns the removal", nfs, false, func(s *nf.VolumeSpec) { s.Retention = "delete" }, 0, "", "10Gi"},
		"Shrink":    {"a volume cannot shrink", nfs, false, func(s *nf.VolumeSpec) { s.Size = "5Gi" }, nf.Invalid, "size", "10Gi"},
		"Source":    {"it has other data then", nfs, false, func(s *nf.VolumeSpec) { s.Source.NFS.Path = "/other" }, nf.Invalid, "source", "10Gi"},
		"Modes":     {"claims rely on them", nfs, false, func(s *nf.VolumeSpec) { s.AccessModes = []string{"ReadWriteMany"} }, nf.Invalid, "access_modes", "10Gi"},
		"Mode": {"it is immutable in Kubernetes", nfs, false, func(s *nf.VolumeSpec) {
			s.Mode = "Block"
			s.Source.NFS = nil
			s.Source.Local = &nf.NodeVolume{Node: "n1", Path: "/d"}
		}, nf.Invalid, "source", "10Gi"},
		"Class":   {"the claim grows, and the driver with it", class, true, func(s *nf.VolumeSpec) { s.Size = "20Gi" }, 0, "", "20Gi"},
		"Unbound": {"only a bound volume can grow", class, false, func(s *nf.VolumeSpec) { s.Size = "20Gi" }, nf.Conflict, "size", ""},
		"Fixed":   {"the class does not allow it", strings.Replace(class, "fast", "fixed", 1), true, func(s *nf.VolumeSpec) { s.Size = "20Gi" }, nf.Invalid, "size", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				all, kind, _ := w.start(t)
				w.create(t, all, request(tc.spec))
				if tc.bound {
					bindOne(t, w, all, kind)
				}
				op, err := all.Change(t.Context(), data, nf.SharedChangeRequest{Edit: func(v *nf.Shared) error {
					var spec nf.VolumeSpec
					must(t, json.Unmarshal(v.Spec, &spec))
					tc.edit(&spec)
					raw, err := json.Marshal(spec)
					v.Spec = raw
					return err
				}})
				if v := nf.ViolationsOf(err); tc.field != "" {
					if nf.KindOf(err) != tc.kind || len(v) == 0 || v[0].Field != tc.field {
						t.Errorf("%s: %v", tc.reason, err)
					}
					return
				}
				must(t, err)
				if op = w.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: the operation is %s: %+v", tc.reason, op.State, op.Failure)
				}
				if got := w.sizeOf(tc.bound); got != tc.size {
					t.Errorf("%s: the size is %q, want %q", tc.reason, got, tc.size)
				}
			})
		})
	}
}

// TestClaimOfGrownVolume has that the bound claim of a volume without a class does not
// change when the volume grows: Kubernetes would refuse that.
func TestClaimOfGrownVolume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		all, kind, _ := w.start(t)
		w.create(t, all, request(nfs))
		bindOne(t, w, all, kind)
		op, err := all.Change(t.Context(), data, nf.SharedChangeRequest{Edit: func(v *nf.Shared) error {
			v.Spec = json.RawMessage(strings.Replace(string(v.Spec), "10Gi", "20Gi", 1))
			return nil
		}})
		must(t, err)
		w.end(t, op)
		v, err := all.Get(t.Context(), data)
		must(t, err)
		bound, err := kind.Claim(t.Context(), v, "first", "db")
		must(t, err)
		w.unclaim("first", "db")
		next, err := kind.Claim(t.Context(), v, "second", "db")
		must(t, err)
		if diff := cmp.Diff([]string{"10Gi", "20Gi"}, []string{bound.Size, next.Size}); diff != "" {
			t.Errorf("the sizes of the bound claim, and of the next one (-want +got):\n%s", diff)
		}
	})
}

// sizeOf returns the size of the PersistentVolume, or what the claim of it requests.
func (w *world) sizeOf(bound bool) string {
	if bound {
		return text(w.objects[nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "first", Name: "db"}.Key()], "spec", "resources", "requests", "storage")
	}
	return text(w.objects[nf.Ref{Version: "v1", Kind: "PersistentVolume", Name: "k8splugin-data"}.Key()], "spec", "capacity", "storage")
}

// bindOne binds the volume to a claim.
func bindOne(t *testing.T, w *world, all *shared.Resources, kind *volume.Kind) {
	t.Helper()
	v, err := all.Get(t.Context(), data)
	must(t, err)
	must(t, kind.Bind(t.Context(), always, v, "first", "db"))
	w.claim("first", "db")
}

// TestNewRefuses leaves out what a configuration needs.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, _, err := volume.New(shared.Config{}, nil); err == nil {
		t.Error("an empty configuration is accepted")
	}
}
