package network

import (
	"context"
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Driver knows one kind of networks. Its methods are pure functions.
type Driver interface {
	// Normalize checks a spec, and returns it with its defaults: two specs that mean
	// the same are equal bytes. It returns nf.Invalid with a violation for each fault,
	// whose field begins with "spec".
	Normalize(spec json.RawMessage) (json.RawMessage, error)
	// Objects returns the objects of a network whose spec is normalized. Those with a
	// namespace are in the given one.
	Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error)
	// NodeLocal reports whether the addresses of a normalized spec are unique only on
	// each node, and the spec does not say that this is intended.
	NodeLocal(spec json.RawMessage) bool
	// Connect returns what a pod needs to be attached. Replicas is the number of pods
	// of the workload, or negative if it is unknown. It returns nf.Invalid with
	// violations whose fields are those of the attachment: "ips[0]".
	Connect(n nf.Network, namespace string, a nf.Attachment, replicas int) (nf.Connection, error)
}

// Cluster is a cloud region, as networks use it. For the contract of its methods, see
// lifecycle.Cluster.
type Cluster interface {
	Observer
	Changer
}

// Observer is the part of a Cluster that changes nothing.
type Observer interface {
	Preflight(ctx context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (existing int, err error)
	Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error)
	Watch(ctx context.Context, owner nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error]
}

// Changer is the part of a Cluster that changes it.
type Changer interface {
	EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error)
	Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error)
	Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error)
}

// Regions are the registered cloud regions.
type Regions interface {
	// Region returns a region. It returns nf.NotFound if the region is not
	// registered.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Hold prevents the removal of a region. It is idempotent.
	Hold(ctx context.Context, h nf.Holding) error
	// Release ends a hold.
	Release(ctx context.Context, h nf.Holding) error
}
