package aai

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	// Source is the data-source of all objects, which the adapter of SO uses, too.
	Source = "K8sPlugin"

	// MaxPods is the number of pods of an instance up to which A&AI gets them.
	MaxPods = 500

	maxLabels = 20 // of one object
)

// Scheme determines the documents of the service's instances, networks and nodes.
type Scheme struct {
	Owner string // data-owner of all objects; another one for each service that writes to one A&AI
	URL   string // of the service, without a slash at the end
}

// Place is a tenant of a cloud region.
type Place struct{ Owner, Region, Tenant string }

// RegionPath returns the path of the cloud region.
func (p Place) RegionPath() string {
	return join("/cloud-infrastructure/cloud-regions/cloud-region", p.Owner, p.Region)
}

// TenantPath returns the path of the tenant.
func (p Place) TenantPath() string { return join(p.RegionPath()+"/tenants/tenant", p.Tenant) }

// Instance is a VNF instance.
type Instance struct {
	ID      string
	Name    string // of its release, or its own
	Place   Place
	VNF     string // id of the generic-vnf that it belongs to; empty: none
	Module  string // id of the vf-module of VNF; empty: none
	Objects []Object
	Pods    []Pod
}

// Object is an object that the instance has applied.
type Object struct {
	Ref        nf.Ref
	Labels     map[string]string
	Generation int64 // metadata.generation, which a change of the status does not change
}

// Pod is a pod, or an instance of a virtual machine.
type Pod struct {
	UID        string
	Namespace  string
	Name       string
	Labels     map[string]string
	Phase      string // status.phase
	Ready      bool
	Job        bool // of a Job: it is omitted when it has ended
	Interfaces []Interface
}

// Interface is an interface of a pod.
type Interface struct {
	Name      string // "eth0", "net1"
	MAC       string
	Network   string // name
	NetworkID string // id of the Network, if it is one of the service
	Type      string // "sriov", "macvlan"; empty: unknown
	MTU       int    // 0: unknown
	Addresses []Address
}

// Resources returns a k8s-resource for each object and each pod. An instance with
// more than MaxPods has none for its pods.
func (s Scheme) Resources(in Instance) []Document {
	var out []Document
	for _, o := range in.Objects {
		out = append(out, s.resource(in, o.Ref, o.Labels, strconv.FormatInt(o.Generation, 10)))
	}
	for _, p := range in.pods() {
		ref := nf.Ref{Version: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
		out = append(out, s.resource(in, ref, p.Labels, p.UID))
	}
	return sorted(out)
}

// pods returns the pods that A&AI gets.
func (in Instance) pods() []Pod {
	out := slices.DeleteFunc(slices.Clone(in.Pods), func(p Pod) bool {
		return p.Job && (p.Phase == "Succeeded" || p.Phase == "Failed")
	})
	if len(out) > MaxPods {
		return nil
	}
	return out
}

func (s Scheme) resource(in Instance, ref nf.Ref, labels map[string]string, version string) Document {
	id := resourceID(in, ref)
	return Document{
		Path: join(in.Place.TenantPath()+"/k8s-resources/k8s-resource", id),
		Attributes: s.marked(version, map[string]any{
			"id": id, "name": ref.Name, "group": ref.Group, "version": ref.Version, "kind": ref.Kind, "namespace": ref.Namespace,
			"labels": labelList(labels), "selflink": s.instanceURL(in),
		}),
		Edges: in.edges(),
	}
}

// resourceID returns the id of a k8s-resource: the one that SO's adapter computes, so
// that the adapter can take the object over.
func resourceID(in Instance, ref nf.Ref) string {
	sum := sha256.Sum256([]byte(in.ID + ref.Name + ref.Namespace + ref.Kind + ref.Group + ref.Version + in.Place.Owner + in.Place.Region + in.Place.Tenant))
	return hex.EncodeToString(sum[:])
}

// labelList returns labels as texts in order. The owner's label is never omitted.
func labelList(labels map[string]string) any {
	var out []string
	for name, value := range labels {
		out = append(out, name+"="+value)
	}
	isOwner := func(label string) bool { return strings.HasPrefix(label, nf.OwnerLabel+"=") }
	slices.SortFunc(out, func(a, b string) int {
		if isOwner(a) != isOwner(b) {
			return map[bool]int{true: -1, false: 1}[isOwner(a)]
		}
		return cmp.Compare(a, b)
	})
	out = out[:min(len(out), maxLabels)]
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return out
}

// edges returns the paths of the VNF and the module that the instance belongs to.
func (in Instance) edges() []string {
	if in.VNF == "" {
		return nil
	}
	vnf := join("/network/generic-vnfs/generic-vnf", in.VNF)
	if in.Module == "" {
		return []string{vnf}
	}
	return []string{vnf, join(vnf+"/vf-modules/vf-module", in.Module)}
}

func (s Scheme) instanceURL(in Instance) string {
	return s.URL + "/v1/vnf_instances/" + url.PathEscape(in.ID)
}

// marked adds the attributes that name the owner of an object.
func (s Scheme) marked(version string, attributes map[string]any) map[string]any {
	attributes[ownerName], attributes["data-source"] = s.Owner, Source
	if version != "" {
		attributes["data-source-version"] = version
	}
	return attributes
}

// text returns nil for an empty text, which A&AI is not to have.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func sorted(docs []Document) []Document {
	slices.SortFunc(docs, func(a, b Document) int { return cmp.Compare(a.Path, b.Path) })
	return docs
}
