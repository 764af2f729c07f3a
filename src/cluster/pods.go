package cluster

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// statusAnnotation is on a pod that Multus has attached to networks.
const statusAnnotation = "k8s.v1.cni.cncf.io/network-status"

// Pods returns the pods of the present revision of each of the owner's refs, in the order
// of the refs. The message of a pod that is not ready has its phase and the state of its
// containers. Pods that the credential may not read are omitted. Pods returns
// nf.Unreachable if the region responds to none of the requests.
func (c *Cluster) Pods(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Pod, error) {
	look, err := newSnapshot(ctx, c.client, owner, refs)
	if err != nil {
		return nil, err
	}
	defer look.set.release()
	if err := look.set.readOnce(ctx, look.unread); err != nil {
		return nil, err
	}
	look.set.explain(ctx, eventKind)
	return look.set.view.pods(refs), nil
}

// pods returns the pods below the refs.
func (v *view) pods(refs []nf.Ref) []nf.Pod {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []nf.Pod
	for _, ref := range refs {
		for p := range v.podsOf(v.objects[ref.Key()]) {
			pod := nf.Pod{Health: podState(p), Workload: ref, Node: text(p.Object, "spec", "nodeName"), Interfaces: interfacesOf(p)}
			switch {
			case p.GetDeletionTimestamp() != nil:
				pod.Status = nf.StatusDeleting
			case isReady(p):
				pod.Status, pod.Message = nf.Current, ""
			}
			out = append(out, pod)
		}
	}
	return out
}

// interfacesOf returns the interfaces of a pod. There are none without the annotation of
// Multus, or if that cannot be read.
func interfacesOf(p *unstructured.Unstructured) []nf.Interface {
	var reported []struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
		MAC       string   `json:"mac"`
	}
	if json.Unmarshal([]byte(p.GetAnnotations()[statusAnnotation]), &reported) != nil {
		return nil
	}
	var out []nf.Interface
	for _, r := range reported {
		out = append(out, nf.Interface{Name: r.Interface, Network: strings.TrimPrefix(r.Name, nf.NetworkNamespace+"/"), IPs: r.IPs, MAC: r.MAC})
	}
	return out
}
