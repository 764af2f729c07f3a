package cluster

import (
	"context"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var (
	setKind   = kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets", true, nil}
	claimKind = kind{schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims", true, nil}
)

// VolumeClaims returns the PersistentVolumeClaims that those of the owner's
// StatefulSets have made which the refs name, grouped by StatefulSet, in the
// order of the refs. A StatefulSet that does not exist any more is taken from the
// planned ones. A claim is known by its name, <template>-<set>-<ordinal>, and by
// the labels of the set's selector. It is left out if it goes with its set, if it
// belongs to another owner, if another StatefulSet may have made it, or if
// another's pod uses it.
func (c *Cluster) VolumeClaims(ctx context.Context, owner string, refs []nf.Ref, planned []*unstructured.Unstructured) ([]nf.SetClaims, error) {
	var out []nf.SetClaims
	places := map[string]*volumes{}
	for _, ref := range refs {
		v := places[ref.Namespace]
		if v == nil {
			v = &volumes{owner: owner, planned: planned}
			if err := c.readVolumes(ctx, ref.Namespace, v); err != nil {
				return nil, err
			}
			places[ref.Namespace] = v
		}
		if set, ours := v.ours(ref); ours {
			if claims := v.of(set); len(claims) > 0 {
				out = append(out, nf.SetClaims{Set: ref, Labels: set.labels, Claims: claims})
			}
		}
	}
	return out, nil
}

// volumes are the StatefulSets of a namespace, their claims, and who uses those.
type volumes struct {
	owner   string
	planned []*unstructured.Unstructured
	sets    []unstructured.Unstructured
	claims  []*metav1.ObjectMeta
	users   map[string][]types.UID // the controllers of the pods that use a claim, by its name
}

// readVolumes reads what there is in a namespace.
func (c *Cluster) readVolumes(ctx context.Context, namespace string, v *volumes) error {
	var err error
	if v.sets, err = c.whole(ctx, setKind.in(namespace), query{}); err != nil {
		return c.fail(ctx, "list", "StatefulSet objects", err)
	}
	err = c.visit(ctx, claimKind.in(namespace), "", func(m *metav1.ObjectMeta) {
		if len(v.claims) < mostFound {
			v.claims = append(v.claims, m)
		}
	}, func() { v.claims = nil })
	if err != nil || len(v.claims) == 0 {
		return c.fail(ctx, "list", "PersistentVolumeClaim objects", err)
	}
	pods, err := c.whole(ctx, podKind.in(namespace), query{})
	if err != nil {
		return c.fail(ctx, "list", "Pod objects", err)
	}
	v.users = map[string][]types.UID{}
	for i := range pods {
		v.use(&pods[i])
	}
	return nil
}

// use notes which claims a pod uses that has not ended.
func (v *volumes) use(p *unstructured.Unstructured) {
	if phase := text(p.Object, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
		return
	}
	var user types.UID
	if controller := metav1.GetControllerOfNoCopy(p); controller != nil {
		user = controller.UID
	}
	for volume := range members(p.Object, "spec", "volumes") {
		if name := text(volume, "persistentVolumeClaim", "claimName"); name != "" {
			v.users[name] = append(v.users[name], user)
		}
	}
}

// claimMaker is what the claims of a StatefulSet are known by.
type claimMaker struct {
	name      string
	uid       types.UID // empty: it does not exist any more
	templates []string
	labels    map[string]string
}

func makerOf(u *unstructured.Unstructured) claimMaker {
	out := claimMaker{name: u.GetName(), uid: u.GetUID()}
	out.labels, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	for template := range members(u.Object, "spec", "volumeClaimTemplates") {
		out.templates = append(out.templates, text(template, "metadata", "name"))
	}
	return out
}

// ours returns the owner's StatefulSet of a name: as it is, or, if there is none
// of that name, as it was planned.
func (v *volumes) ours(ref nf.Ref) (set claimMaker, ours bool) {
	for i := range v.sets {
		if live := &v.sets[i]; live.GetName() == ref.Name {
			return makerOf(live), live.GetLabels()[nf.OwnerLabel] == v.owner
		}
	}
	for _, u := range v.planned {
		if refOf(u).Key() == ref.Key() {
			set = makerOf(u)
			set.uid = ""
			return set, true
		}
	}
	return claimMaker{}, false
}

// of returns the claims that a StatefulSet has made and that are the owner's to
// delete.
func (v *volumes) of(set claimMaker) []nf.Ref {
	var out []nf.Ref
	for _, m := range v.claims {
		other := m.Labels[nf.OwnerLabel]
		if set.made(m) && (other == "" || other == v.owner) && !dependent(m) && !v.shared(set, m) {
			out = append(out, claimKind.in(m.Namespace).ref(m))
		}
	}
	slices.SortFunc(out, nf.Ref.Compare)
	return out
}

// made reports whether a claim has the name and the labels of those that a
// StatefulSet makes.
func (s claimMaker) made(m *metav1.ObjectMeta) bool {
	return len(s.labels) > 0 && within(s.labels, m.Labels) && slices.ContainsFunc(s.templates, func(template string) bool {
		ordinal, is := strings.CutPrefix(m.Name, template+"-"+s.name+"-")
		n, err := strconv.ParseUint(ordinal, 10, 32)
		return is && err == nil && strconv.FormatUint(n, 10) == ordinal
	})
}

// dependent reports whether a claim goes with its StatefulSet or pod by itself.
func dependent(m *metav1.ObjectMeta) bool { return len(m.OwnerReferences) > 0 }

// shared reports whether a claim may be another StatefulSet's, or is used by a
// pod that is not of the set.
func (v *volumes) shared(set claimMaker, m *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(v.users[m.Name], func(user types.UID) bool { return user == "" || user != set.uid }) ||
		slices.ContainsFunc(v.sets, func(u unstructured.Unstructured) bool {
			return u.GetUID() != set.uid && makerOf(&u).made(m)
		})
}
