package cluster

import (
	"context"
	"fmt"
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
	setKind   = kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets", true, nil, nil}
	claimKind = kind{schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims", true, nil, nil}
)

// VolumeClaims returns the PersistentVolumeClaims that the owner's StatefulSets
// among the refs have created, grouped by StatefulSet, in the order of the
// refs. For a StatefulSet that no longer exists, it uses the one in planned. It
// identifies a claim by its name, <template>-<set>-<ordinal>, and by the labels
// of the set's selector.
//
// A claim is left out if it is deleted with its set, if it belongs to another
// owner, if another StatefulSet may have created it, or if a pod of another
// controller uses it. VolumeClaims returns nf.TooLarge if a namespace has more
// than 5000 claims, StatefulSets or pods.
func (c *Cluster) VolumeClaims(ctx context.Context, owner nf.Subject, refs []nf.Ref, planned []*unstructured.Unstructured) ([]nf.SetClaims, error) {
	var out []nf.SetClaims
	places := map[string]*volumes{}
	for _, ref := range refs {
		v := places[ref.Namespace]
		if v == nil {
			v = &volumes{owner: owner, planned: planned}
			if err := v.read(ctx, c.client, ref.Namespace); err != nil {
				return nil, err
			}
			places[ref.Namespace] = v
		}
		if set, ours := v.ours(ref); ours {
			if claims := v.claimsOf(set); len(claims) > 0 {
				out = append(out, nf.SetClaims{Set: ref, Labels: set.labels, Claims: claims})
			}
		}
	}
	return out, nil
}

// volumes are the StatefulSets of a namespace, their claims, and the users of
// the claims.
type volumes struct {
	owner   nf.Subject
	planned []*unstructured.Unstructured
	sets    []claimMaker // the existing ones
	claims  []*metav1.ObjectMeta
	users   map[string][]types.UID // by claim name: the controllers of the pods that use it
}

// read reads the StatefulSets, claims and pods of a namespace.
func (v *volumes) read(ctx context.Context, c *client, namespace string) error {
	sets, err := c.whole(ctx, setKind.in(namespace), query{})
	if err != nil {
		return c.region.fail(ctx, "list", "StatefulSet objects", err)
	}
	defer sets.release() // only little of them is kept
	for i := range sets.items {
		v.sets = append(v.sets, makerOf(&sets.items[i]))
	}
	err = c.visit(ctx, claimKind.in(namespace), "", func(m *metav1.ObjectMeta) {
		if len(v.claims) <= mostFound {
			v.claims = append(v.claims, m)
		}
	}, func() { v.claims = nil })
	if len(v.claims) > mostFound {
		return nf.E(nf.TooLarge, "list", "PersistentVolumeClaim objects", fmt.Errorf("namespace %s has more than %d", namespace, mostFound))
	}
	if err != nil || len(v.claims) == 0 {
		return c.region.fail(ctx, "list", "PersistentVolumeClaim objects", err)
	}
	pods, err := c.whole(ctx, podKind.in(namespace), query{})
	if err != nil {
		return c.region.fail(ctx, "list", "Pod objects", err)
	}
	defer pods.release()
	v.users = map[string][]types.UID{}
	for i := range pods.items {
		v.use(&pods.items[i])
	}
	return nil
}

// use records which claims a pod uses, unless it has ended.
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

// claimMaker is what identifies the claims of a StatefulSet.
type claimMaker struct {
	name      string
	owner     nf.Subject
	uid       types.UID // empty: it no longer exists
	templates []string
	labels    map[string]string
}

func makerOf(u *unstructured.Unstructured) claimMaker {
	out := claimMaker{name: u.GetName(), owner: nf.OwnerOf(u.GetLabels()), uid: u.GetUID()}
	out.labels, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	for template := range members(u.Object, "spec", "volumeClaimTemplates") {
		out.templates = append(out.templates, text(template, "metadata", "name"))
	}
	return out
}

// ours returns the owner's StatefulSet of a name: the existing one, or the
// planned one if none exists.
func (v *volumes) ours(ref nf.Ref) (set claimMaker, ours bool) {
	for _, live := range v.sets {
		if live.name == ref.Name {
			return live, live.owner == v.owner
		}
	}
	for _, u := range v.planned {
		if nf.RefOf(u).Key() == ref.Key() {
			set = makerOf(u)
			set.uid = ""
			return set, true
		}
	}
	return claimMaker{}, false
}

// claimsOf returns the claims that a StatefulSet created and that the owner may
// delete.
func (v *volumes) claimsOf(set claimMaker) []nf.Ref {
	var out []nf.Ref
	for _, m := range v.claims {
		other := nf.OwnerOf(m.Labels)
		if set.made(m) && (other.ID == "" || other == v.owner) && !dependent(m) && !v.shared(set, m) {
			out = append(out, claimKind.in(m.Namespace).ref(m))
		}
	}
	slices.SortFunc(out, nf.Ref.Compare)
	return out
}

// made reports whether a claim has the name and labels of a claim that the
// StatefulSet creates.
func (s claimMaker) made(m *metav1.ObjectMeta) bool {
	return len(s.labels) > 0 && within(s.labels, m.Labels) && slices.ContainsFunc(s.templates, func(template string) bool {
		ordinal, is := strings.CutPrefix(m.Name, template+"-"+s.name+"-")
		n, err := strconv.ParseUint(ordinal, 10, 32)
		return is && err == nil && strconv.FormatUint(n, 10) == ordinal
	})
}

// dependent reports whether the garbage collector deletes a claim with its
// StatefulSet or pod.
func dependent(m *metav1.ObjectMeta) bool { return len(m.OwnerReferences) > 0 }

// shared reports whether another StatefulSet may have created a claim, or a pod
// that is not of the set uses it.
func (v *volumes) shared(set claimMaker, m *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(v.users[m.Name], func(user types.UID) bool { return user == "" || user != set.uid }) ||
		slices.ContainsFunc(v.sets, func(other claimMaker) bool { return other.uid != set.uid && other.made(m) })
}
