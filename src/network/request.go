package network

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Create accepts a new network that the holder of the request holds, and returns the
// operation that creates it. If the region has a network with the name, its driver
// and its spec must be equal: then the holder holds it, too, and the id of the
// operation is empty. Otherwise Create returns nf.Exists with the differences. It
// returns nf.Invalid for a wrong spec, nf.Unsupported if the region does not serve
// what the driver needs, and nf.Conflict for objects of others.
func (s *Networks) Create(ctx context.Context, req nf.NetworkRequest) (nf.Operation, error) {
	if err := req.Validate(); err != nil {
		return nf.Operation{}, err
	}
	driver, err := s.driver("create", req.Network)
	if err != nil {
		return nf.Operation{}, err
	}
	n := req.Network
	n.ID = nf.NetworkID(n.Region, n.Name)
	if n.Spec, err = driver.Normalize(n.Spec); err != nil {
		return nf.Operation{}, err
	}
	op, err := s.accept(ctx, n.ID, req.Key, func() (operation.Request, error) {
		_, err := s.networks.Get(ctx, n.ID)
		if err == nil {
			return operation.Request{}, nf.E(nf.Exists, "create", "network "+n.ID, nil)
		}
		if nf.KindOf(err) != nf.NotFound {
			return operation.Request{}, err
		}
		return s.create(ctx, n, req)
	})
	if nf.KindOf(err) != nf.Exists {
		return op, err
	}
	there, err := s.networks.Get(ctx, n.ID)
	if err != nil {
		return op, err
	}
	return s.join(ctx, there, n, req)
}

// join adds the holder of a request to a network that exists.
func (s *Networks) join(ctx context.Context, there, wanted nf.Network, req nf.NetworkRequest) (nf.Operation, error) {
	if v := differences(there, wanted); len(v) > 0 {
		return nf.Operation{}, nf.E(nf.Exists, "create", "network "+wanted.ID, v)
	}
	holder := Named(req.Holder)
	had, err := s.holds.Has(ctx, there.ID, holder)
	if err != nil {
		return nf.Operation{}, err
	}
	n, err := s.Use(ctx, there.ID, holder)
	switch {
	case nf.KindOf(err) != nf.Busy:
		return nf.Operation{}, err
	case n.State == nf.NetworkCreating:
		return s.ledger.Get(ctx, n.Operation) // the answer waits for it
	case !had:
		err = errors.Join(err, s.holds.Drop(ctx, there.ID, holder))
	}
	return nf.Operation{}, err
}

// differences returns a violation for each difference between a network and another
// one of its name.
func differences(there, wanted nf.Network) nf.Violations {
	if there.Driver != wanted.Driver {
		return nf.Violations{{Field: "driver", Message: fmt.Sprintf("the network exists with the driver %s", there.Driver)}}
	}
	if bytes.Equal(there.Spec, wanted.Spec) {
		return nil
	}
	var has, wants map[string]any
	if errors.Join(json.Unmarshal(there.Spec, &has), json.Unmarshal(wanted.Spec, &wants)) != nil {
		return nf.Violations{{Field: "spec", Message: "the network exists with another spec"}}
	}
	return different("spec", has, wants)
}

// different returns a violation for each field in which two values differ.
func different(path string, has, wants any) nf.Violations {
	left, ok := has.(map[string]any)
	right, both := wants.(map[string]any)
	if !ok || !both {
		a, _ := json.Marshal(has)
		b, _ := json.Marshal(wants)
		if bytes.Equal(a, b) {
			return nil
		}
		return nf.Violations{{Field: path, Message: fmt.Sprintf("the network exists with %s instead of %s", a, b)}}
	}
	var v nf.Violations
	keys := slices.Concat(slices.Collect(maps.Keys(left)), slices.Collect(maps.Keys(right)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		v = append(v, different(path+"."+key, left[key], right[key])...)
	}
	return v
}

func (s *Networks) create(ctx context.Context, n nf.Network, req nf.NetworkRequest) (operation.Request, error) {
	if _, err := s.cfg.Regions.Region(ctx, n.Region); err != nil {
		if nf.KindOf(err) == nf.NotFound {
			err = nf.E(nf.NotFound, "create", "network "+n.Name, nf.Violations{{Field: "cloud_region_id", Message: fmt.Sprintf("%q does not exist", n.Region)}})
		}
		return operation.Request{}, err
	}
	objects, err := s.check(ctx, n)
	if err != nil {
		return operation.Request{}, err
	}
	op := s.operation(n, nf.NetworkCreate, req.Timeout, req.Trace)
	op.Network.Holder = req.Holder
	n.State, n.Inventory, n.Created = nf.NetworkCreating, refsOf(objects), op.Accepted
	n.Failure, n.Operation, n.Claim, n.Last = nf.Text{}, "", "", ""
	lockOf(&n).Take(op)
	return operation.Request{Operation: op, Lock: func(ctx context.Context, _ nf.Operation) ([]store.Op, error) {
		hold, err := s.holds.AddOp(n.ID, Named(req.Holder))
		if err != nil {
			return nil, err
		}
		created, err := s.locks.CreateOp(ctx, n)
		return []store.Op{hold, created}, err
	}}, nil
}

// check returns the objects of a network, if its region accepts them.
func (s *Networks) check(ctx context.Context, n nf.Network) ([]*unstructured.Unstructured, error) {
	driver, err := s.driver("check", n)
	if err != nil {
		return nil, err
	}
	c, err := s.cfg.Open(ctx, n.Region)
	if err != nil {
		return nil, err
	}
	if err := checkNodes(ctx, c, driver, n); err != nil {
		return nil, err
	}
	objects, err := ownedObjects(driver, n)
	if err == nil && len(objects) > 0 {
		_, err = c.Preflight(ctx, subjectOf(n.ID), nf.Bounds{Namespace: nf.NetworkNamespace}, objects)
	}
	return objects, err
}

// checkNodes returns nf.Invalid for a network that would give two pods on different
// nodes the same address.
func checkNodes(ctx context.Context, c Cluster, driver Driver, n nf.Network) error {
	if !driver.NodeLocal(n.Spec) {
		return nil
	}
	list, err := c.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Node"})
	if err != nil {
		return err
	}
	if nodes, _ := list["items"].([]any); len(nodes) > 1 {
		return nf.E(nf.Invalid, "check", "network "+n.Name, nf.Violations{{Field: "spec.ipam.type",
			Message: fmt.Sprintf("gives addresses on each of the %d nodes independently, so that two pods can get the same one; set spec.node_local to true if that is intended", len(nodes))}})
	}
	return nil
}

// Change accepts a change of a network, and returns the operation. It returns nf.Busy
// while another operation of the network runs, and nf.Conflict if the network is being
// removed.
func (s *Networks) Change(ctx context.Context, id string, req nf.NetworkChangeRequest) (nf.Operation, error) {
	return s.accept(ctx, id, req.Key, func() (operation.Request, error) { return s.change(ctx, id, req) })
}

func (s *Networks) change(ctx context.Context, id string, req nf.NetworkChangeRequest) (operation.Request, error) {
	before, err := s.networks.Get(ctx, id)
	if err != nil {
		return operation.Request{}, err
	}
	if err := lockOf(&before).Free("change"); err != nil {
		return operation.Request{}, err
	}
	after, err := s.edited(before, req.Edit)
	if err != nil {
		return operation.Request{}, err
	}
	objects, err := s.check(ctx, after)
	if err != nil {
		return operation.Request{}, err
	}
	op := s.operation(before, nf.NetworkChange, req.Timeout, req.Trace)
	op.Network.Spec = after.Spec
	return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
		taken, err := s.locks.TakeOp(ctx, op, before, func(n *nf.Network) error {
			n.Keep, n.Description, n.Labels = after.Keep, after.Description, after.Labels
			n.State, n.Inventory = nf.NetworkChanging, union(n.Inventory, refsOf(objects))
			return nil
		})
		return []store.Op{taken}, err
	}}, nil
}

// edited returns a network after an edit, with a normalized spec.
func (s *Networks) edited(n nf.Network, edit func(*nf.Network) error) (nf.Network, error) {
	n.Labels = maps.Clone(n.Labels)
	if err := edit(&n); err != nil {
		return n, err
	}
	if v := slices.Concat(nf.CheckLabels("labels", n.Labels), nf.CheckText("description", n.Description)); len(v) > 0 {
		return n, nf.E(nf.Invalid, "change", "network "+n.ID, v)
	}
	driver, err := s.driver("change", n)
	if err != nil {
		return n, err
	}
	n.Spec, err = driver.Normalize(n.Spec)
	return n, err
}

// remove accepts the removal of a network without holders.
func (s *Networks) remove(ctx context.Context, seen nf.Network, req nf.NetworkReleaseRequest) (nf.Operation, error) {
	return s.accept(ctx, seen.ID, req.Key, func() (operation.Request, error) {
		if err := lockOf(&seen).Free("remove"); err != nil {
			return operation.Request{}, err
		}
		op := s.operation(seen, nf.NetworkRemove, req.Timeout, req.Trace)
		return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
			taken, err := s.locks.TakeOp(ctx, op, seen, func(n *nf.Network) error { n.State = nf.NetworkDeleting; return nil })
			return []store.Op{taken}, err
		}}, nil
	})
}

// operation returns a new operation of a network.
func (s *Networks) operation(n nf.Network, verb nf.Verb, timeout time.Duration, trace string) nf.Operation {
	op := s.acceptor.New(subjectOf(n.ID), timeout)
	op.Region, op.Project, op.Verb, op.OnFailure, op.Trace = n.Region, nf.ProjectOf(n.Project), verb, nf.Undo, trace
	if verb == nf.NetworkRemove {
		op.OnFailure = nf.Keep // what is deleted cannot be restored
	}
	return op
}

// accept executes a request, unless it was already executed under the same key. Keys
// are those of the requests to one network.
func (s *Networks) accept(ctx context.Context, id string, key nf.RequestKey, prepare func() (operation.Request, error)) (nf.Operation, error) {
	if key.Key != "" {
		key.Client += "\x00network " + id
	}
	return s.acceptor.Accept(ctx, key, prepare)
}

// withdraw deletes the hold of a request that was not accepted, unless another request
// has created the network.
func (s *Networks) withdraw(ctx context.Context, op nf.Operation) error {
	if op.Network.Holder == "" {
		return nil
	}
	_, err := s.networks.Get(ctx, op.Subject.ID)
	if nf.KindOf(err) != nf.NotFound || err == nil {
		return err
	}
	return s.holds.Drop(ctx, op.Subject.ID, Named(op.Network.Holder))
}

func unknownDriver(name string, known map[string]Driver) string {
	return fmt.Sprintf("%q is not one of %s", cmp.Or(name, "none"), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}
