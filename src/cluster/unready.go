package cluster

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	longestReport = 1 << 10 // bytes per pod
	longestWord   = 300     // bytes per message of the kubelet or of an event
)

// Unready returns those pods of the owner's refs that are not ready, sorted, at
// most the given number, and how many more there are. Each message has the
// pod's phase, the state of its containers and its last event, in at most
// longestReport bytes. Events that cannot be read are left out.
func (c *Cluster) Unready(ctx context.Context, owner nf.Subject, refs []nf.Ref, most int) (pods []nf.Health, more int, err error) {
	look, err := newSnapshot(ctx, c.client, owner, refs)
	if err != nil {
		return nil, 0, err
	}
	defer look.set.release()
	err = each(c.client.parallel, len(look.set.streams), func(i int) error {
		s := look.set.streams[i]
		if s.scope.kind.GroupKind() == eventKind.GroupKind() {
			return nil // report reads the events of the pods that it needs
		}
		err := s.list(ctx)
		return c.client.region.fail(ctx, "list", s.scope.kind.Kind+" objects", err)
	})
	if err != nil {
		return nil, 0, err
	}
	found := look.set.view.unready(refs)
	told := found[:min(most, len(found))]
	pods = make([]nf.Health, len(told))
	err = each(c.client.parallel, len(told), func(i int) error {
		pods[i] = report(ctx, c.client, told[i])
		return nil
	})
	return pods, len(found) - len(told), err
}

// unready returns the pods below the refs that are not ready, sorted.
func (v *view) unready(refs []nf.Ref) []*unstructured.Unstructured {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := map[string]*unstructured.Unstructured{}
	for _, ref := range refs {
		for p := range v.podsOf(v.objects[ref.Key()]) {
			if p.GetDeletionTimestamp() == nil && !isReady(p) {
				found[nf.RefOf(p).Key()] = p
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *unstructured.Unstructured) int { return nf.RefOf(a).Compare(nf.RefOf(b)) })
}

// podsOf yields the pods that decide whether an object is ready. The caller
// holds the lock.
func (v *view) podsOf(u *unstructured.Unstructured) iter.Seq[*unstructured.Unstructured] {
	none := func(func(*unstructured.Unstructured) bool) {}
	if u == nil {
		return none
	}
	if isOf(u, guestKind) {
		return func(yield func(*unstructured.Unstructured) bool) { yield(u) }
	}
	if hasGuests(u.GroupVersionKind().GroupKind()) {
		return v.childrenOf(u, guestKind)
	}
	counts := isAny
	switch runs(u.GroupVersionKind().GroupKind()) {
	case "Pod":
		return func(yield func(*unstructured.Unstructured) bool) { yield(u) }
	case "Deployment":
		if u = v.present(u); u == nil {
			return none
		}
	case "StatefulSet":
		counts = hasLabel("controller-revision-hash", text(u.Object, "status", "updateRevision"))
	case "DaemonSet":
		counts = hasLabel("pod-template-generation", u.GetAnnotations()["deprecated.daemonset.template.generation"])
	}
	return func(yield func(*unstructured.Unstructured) bool) {
		for p := range v.childrenOf(u, podKind) {
			if counts(p) && !yield(p) {
				return
			}
		}
	}
}

// isReady reports whether a pod is ready or has succeeded.
func isReady(p *unstructured.Unstructured) bool {
	ready, _ := condition(p, "Ready", "True")
	return ready || text(p.Object, "status", "phase") == "Succeeded"
}

// report returns the health of a pod that is not ready, with a message.
func report(ctx context.Context, c *client, p *unstructured.Unstructured) nf.Health {
	out := podState(p)
	if e := lastEvent(ctx, c, p); e != nil {
		event := words("last event", text(e.Object, "reason"), text(e.Object, "message"))
		out.Message = cut(out.Message+"; "+event, longestReport)
	}
	return out
}

// podState returns the health of a pod that is not ready, with a message.
func podState(p *unstructured.Unstructured) nf.Health {
	out := nf.Health{Ref: nf.RefOf(p), Status: nf.InProgress, UID: string(p.GetUID()), Generation: p.GetGeneration()}
	phase := cmp.Or(text(p.Object, "status", "phase"), "Pending")
	if phase == "Failed" {
		out.Status = nf.StatusFailed
	}
	parts := []string{words(phase, text(p.Object, "status", "reason"), text(p.Object, "status", "message"))}
	if unscheduled, why := condition(p, "PodScheduled", "False"); unscheduled {
		parts = append(parts, words("it is not scheduled", why))
	}
	for s := range containers(p) {
		if says := containerSays(s); says != "" {
			parts = append(parts, says)
		}
	}
	out.Message = cut(strings.Join(parts, "; "), longestReport)
	return out
}

// containerSays returns why a container does not run or is not ready; "" if it
// is ready or has succeeded.
func containerSays(status map[string]any) string {
	name := "container " + text(status, "name")
	ready, _, _ := unstructured.NestedBool(status, "ready")
	before := ""
	if state, failed := ended(status, "lastState"); failed {
		before = " (it " + state + " before)"
	}
	if waiting, found, _ := unstructured.NestedMap(status, "state", "waiting"); found {
		return words(name+" is waiting"+before, text(waiting, "reason"), text(waiting, "message"))
	}
	if state, failed := ended(status, "state"); failed {
		return name + " " + state
	}
	if _, running, _ := unstructured.NestedFieldNoCopy(status, "state", "running"); running && !ready {
		return name + " runs and is not ready" + before
	}
	return ""
}

// ended returns how a container ended, for example "ended with exit code 137:
// OOMKilled".
func ended(status map[string]any, state string) (says string, failed bool) {
	end, found, _ := unstructured.NestedMap(status, state, "terminated")
	if !found {
		return "", false
	}
	code, _, _ := unstructured.NestedInt64(end, "exitCode")
	return words(fmt.Sprintf("ended with exit code %d", code), text(end, "reason"), text(end, "message")), code != 0
}

// words joins the non-empty texts, each cut to longestWord.
func words(first string, more ...string) string {
	for _, s := range more {
		if s != "" {
			first += ": " + cut(strings.TrimSpace(s), longestWord)
		}
	}
	return first
}

// lastEvent returns the last event of a pod, or nil if there is none or events
// cannot be read. Of events in the same second, it prefers a warning.
func lastEvent(ctx context.Context, c *client, p *unstructured.Unstructured) *unstructured.Unstructured {
	all, err := c.whole(ctx, eventKind.in(p.GetNamespace()), query{fields: "involvedObject.uid=" + string(p.GetUID())})
	if err != nil || len(all.items) == 0 {
		return nil
	}
	defer all.release()
	last := slices.MaxFunc(all.items, func(a, b unstructured.Unstructured) int {
		if order := eventTime(&a).Compare(eventTime(&b)); order != 0 {
			return order
		}
		return cmp.Compare(text(a.Object, "type"), text(b.Object, "type")) // "Normal", "Warning"
	})
	return &last
}
