package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// statusAnnotation is on a pod that Multus has attached to networks.
const statusAnnotation = "k8s.v1.cni.cncf.io/network-status"

// Pods returns the pods of the present revision of each of the owner's refs, in the order
// of the refs. The message of a pod that is not ready has its phase and the state of its
// containers. The instances of virtual machines count as pods. Pods that the credential
// may not read are omitted. Pods returns nf.Unreachable if the region responds to none of
// the requests.
func (c *Cluster) Pods(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Pod, error) {
	look, err := newSnapshot(ctx, c.client, owner, refs)
	if err != nil {
		return nil, err
	}
	defer look.set.release()
	for _, t := range look.targets {
		if t.served && hasGuests(t.kind.GroupKind()) {
			look.set.add(guestKind.in(t.ref.Namespace), query{labels: ownedBy(owner)})
		}
	}
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
			pod := nf.Pod{
				Health: podState(p), Labels: p.GetLabels(), Phase: text(p.Object, "status", "phase"), Reason: podReason(p), IPs: ipsOf(p),
				Workload: ref, Node: text(p.Object, "spec", "nodeName"), Interfaces: interfacesOf(p),
			}
			if isOf(p, guestKind) {
				pod.Node, pod.Interfaces = text(p.Object, "status", "nodeName"), guestInterfaces(p)
			}
			switch {
			case p.GetDeletionTimestamp() != nil:
				pod.Status = nf.StatusDeleting
			case isReady(p):
				pod.Status, pod.Message, pod.Reason = nf.Current, "", ""
			}
			out = append(out, pod)
		}
	}
	return out
}

// podReason returns why a pod does not run: that of its node or its eviction, or that of
// the first container that waits for another reason than that it starts.
func podReason(p *unstructured.Unstructured) string {
	for c := range members(p.Object, "status", "conditions") {
		if text(c, "type") == "DisruptionTarget" && text(c, "status") == "True" {
			return text(c, "reason")
		}
	}
	if reason := text(p.Object, "status", "reason"); reason != "" {
		return reason
	}
	for c := range containers(p) {
		if reason := text(c, "state", "waiting", "reason"); !harmlessReasons[reason] {
			return reason
		}
	}
	return ""
}

// ipsOf returns the addresses of a pod in the cluster's network.
func ipsOf(p *unstructured.Unstructured) (out []string) {
	for one := range members(p.Object, "status", "podIPs") {
		out = append(out, text(one, "ip"))
	}
	return out
}

// guestKind is the kind of the instances of virtual machines.
var guestKind = kind{schema.GroupVersionKind{Group: machineGroup, Version: "v1", Kind: "VirtualMachineInstance"}, "virtualmachineinstances", true, nil, nil}

// hasGuests reports whether objects of a kind control instances of virtual machines.
func hasGuests(gk schema.GroupKind) bool {
	return gk.Group == machineGroup && (gk.Kind == "VirtualMachine" || gk.Kind == "VirtualMachineInstanceReplicaSet")
}

// guestInterfaces returns the interfaces of an instance of a virtual machine, as KubeVirt
// and the agent in the guest report them: they have the names of the machine's networks.
func guestInterfaces(guest *unstructured.Unstructured) []nf.Interface {
	networks := map[string]string{}
	for n := range members(guest.Object, "spec", "networks") {
		networks[text(n, "name")] = strings.TrimPrefix(text(n, "multus", "networkName"), nf.NetworkNamespace+"/")
	}
	var out []nf.Interface
	for i := range members(guest.Object, "status", "interfaces") {
		name := text(i, "name")
		one := nf.Interface{Name: cmp.Or(name, text(i, "interfaceName")), Network: cmp.Or(networks[name], name), MAC: text(i, "mac")}
		one.IPs, _, _ = unstructured.NestedStringSlice(i, "ipAddresses")
		out = append(out, one)
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
