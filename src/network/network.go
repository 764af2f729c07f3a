package network

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// Driver knows one kind of networks. Its methods are pure functions.
type Driver interface {
	Specs
	Maker
	Describer
}

// Describer is the part of a Driver that tells others of a network.
type Describer interface {
	// Layout returns where a network is, and which addresses it has. Its spec is
	// normalized. What the spec does not say is missing.
	Layout(n nf.Network) (nf.Layout, error)
}

// Specs is the part of a Driver that checks specs.
type Specs interface {
	// Kinds returns the kinds of the API that a spec can depend on, if a region serves
	// them.
	Kinds() []nf.Ref
	// Normalize checks a spec for a region, and returns it with its defaults: two specs
	// that mean the same in the region are equal bytes. A normalized spec is its own
	// normal form, and contains all that the other methods need to know of the region.
	// It returns nf.Invalid with a violation for each fault, whose field begins with
	// "spec".
	Normalize(spec json.RawMessage, region nf.NetworkRegion) (json.RawMessage, error)
	// Frozen returns a violation for each difference between two normalized specs that
	// the objects of a network cannot follow. Attached: there can be pods that are
	// attached to the network.
	Frozen(before, after json.RawMessage, attached bool) nf.Violations
	// NodeLocal reports whether the addresses of a normalized spec are unique only on
	// each node, and the spec does not say that this is intended.
	NodeLocal(spec json.RawMessage) bool
}

// Maker is the part of a Driver that makes networks and attachments.
type Maker interface {
	// Objects returns the objects of a network whose spec is normalized. They are
	// cluster-scoped, or in the given namespace, unless the spec names another one.
	Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error)
	// Connect returns what a pod needs to be attached. Replicas is the number of pods
	// of the workload, or negative if it is unknown. It returns nf.Invalid with
	// violations whose fields are those of the attachment: "ips[0]".
	Connect(n nf.Network, namespace string, a nf.Attachment, replicas int) (nf.Connection, error)
}

// Drivers are the drivers of networks, by name.
type Drivers map[string]Driver

var _ shared.Kind = Drivers(nil)

// New returns the networks of a store. The configuration lacks what the kind says.
func New(cfg shared.Config, drivers Drivers) (*shared.Resources, error) {
	if len(drivers) == 0 {
		return nil, errors.New("cannot create the networks: Drivers are required")
	}
	cfg.Kind, cfg.Subject, cfg.Table, cfg.Namespace, cfg.Field = drivers, nf.NetworkSubject, nf.NetworkTable, nf.NetworkNamespace, "spec"
	cfg.Task = func(op *nf.Operation) *nf.SharedTask { return &op.Network }
	return shared.New(cfg)
}

// driver returns the driver of a network. It returns nf.Unsupported if this service
// does not have it.
func (d Drivers) driver(verb string, n nf.Network) (Driver, error) {
	if driver := d[n.Driver]; driver != nil {
		return driver, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(d)), ", ")
	return nil, nf.E(nf.Unsupported, verb, "network "+n.Name,
		nf.Violations{{Field: "driver", Message: fmt.Sprintf("%q is not one of %s", cmp.Or(n.Driver, "none"), known)}})
}

// Connect returns what the pods of a workload need to be attached to a network; see
// Driver.
func (d Drivers) Connect(n nf.Network, a nf.Attachment, replicas int) (nf.Connection, error) {
	driver, err := d.driver("attach", n)
	if err != nil {
		return nf.Connection{}, err
	}
	return driver.Connect(n, nf.NetworkNamespace, a, replicas)
}

// Layout returns where a network is, and which addresses it has; see Driver.
func (d Drivers) Layout(n nf.Network) (nf.Layout, error) {
	driver, err := d.driver("describe", n)
	if err != nil {
		return nf.Layout{}, err
	}
	return driver.Layout(n)
}

// Normalize implements shared.Kind.
func (d Drivers) Normalize(ctx context.Context, in shared.Place, n nf.Network, before json.RawMessage) (json.RawMessage, error) {
	driver, err := d.driver("create", n)
	if err != nil {
		return nil, err
	}
	region := nf.NetworkRegion{Interfaces: in.Region.Interfaces}
	if kinds := driver.Kinds(); len(kinds) > 0 {
		c, err := in.Open()
		if err != nil {
			return nil, err
		}
		if region.Served, err = c.Served(ctx, kinds); err != nil {
			return nil, err
		}
	}
	spec, err := driver.Normalize(n.Spec, region)
	if err != nil || before == nil {
		return spec, err
	}
	if v := driver.Frozen(before, spec, in.Attached); len(v) > 0 {
		return nil, nf.E(nf.Conflict, "change", "network "+n.ID, v)
	}
	return spec, nil
}

// Check implements shared.Kind.
func (d Drivers) Check(ctx context.Context, c shared.Cluster, n nf.Network) ([]nf.Ref, error) {
	driver, err := d.driver("check", n)
	if err != nil {
		return nil, err
	}
	if err := checkNodes(ctx, c, driver, n); err != nil {
		return nil, err
	}
	objects, err := driver.Objects(n, nf.NetworkNamespace)
	if err != nil || len(objects) == 0 {
		return nil, err
	}
	owner := nf.Subject{Kind: nf.NetworkSubject, ID: n.ID}
	for _, obj := range objects {
		render.Tag(obj, owner)
	}
	_, err = c.Preflight(ctx, owner, boundsOf(objects), objects)
	return shared.RefsOf(objects), err
}

// boundsOf allows what a driver makes: cluster-scoped objects, and namespaces of
// controllers. Networks are shared by the projects of a region, and a permission of their
// own guards them.
func boundsOf(objects []*unstructured.Unstructured) nf.Bounds {
	b := nf.Bounds{Namespace: nf.NetworkNamespace, Tenancy: nf.Tenancy{Whole: true}}
	for _, obj := range objects {
		if namespace := obj.GetNamespace(); namespace != "" && !b.Opens(namespace) {
			b.Further = append(b.Further, namespace)
		}
	}
	return b
}

// Apply implements shared.Kind.
func (d Drivers) Apply(ctx context.Context, r *shared.Region, n nf.Network) error {
	objects, err := d.objects("apply", n)
	if err != nil {
		return err
	}
	return r.Apply(ctx, objects)
}

// Refs implements shared.Kind.
func (d Drivers) Refs(n nf.Network) ([]nf.Ref, error) {
	objects, err := d.objects("list", n)
	return shared.RefsOf(objects), err
}

// Remove implements shared.Kind.
func (Drivers) Remove(ctx context.Context, r *shared.Region, n nf.Network) error {
	return r.Delete(ctx, n.Inventory)
}

func (d Drivers) objects(verb string, n nf.Network) ([]*unstructured.Unstructured, error) {
	driver, err := d.driver(verb, n)
	if err != nil {
		return nil, err
	}
	return driver.Objects(n, nf.NetworkNamespace)
}
