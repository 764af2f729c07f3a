package sol003

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// Clouds makes stacks of Heat in the regions that are OpenStack clouds.
type Clouds interface {
	// Stack returns a stack with the templates that a package has for a flavor. It returns
	// nf.Unsupported if it has none, and nf.Invalid if a parameter of them has no value.
	Stack(ctx context.Context, pkg, flavor string, s nf.Stack) (nf.Stack, error)
	// Apply makes Heat create or change a stack, unless the attempt has made it do so.
	Apply(ctx context.Context, region string, s nf.Stack) error
	// Delete makes Heat delete a stack, which need not exist.
	Delete(ctx context.Context, region, name string) error
	// Await waits until Heat changes nothing more of a stack, and returns the attempt that
	// has changed it last. With stop, Heat is to end a present change early. Await returns
	// nf.NotFound if the stack does not exist, and nf.Failed if the last change has failed.
	Await(ctx context.Context, region, name string, stop bool) (attempt string, err error)
	// Components returns the servers of a stack. VDU is the name of their resource.
	Components(ctx context.Context, region, name string) ([]nf.VNFC, error)
}

// heat carries out attempts at occurrences of a VNF whose components are the servers of a
// stack.
type heat struct{ r *run }

var _ carrier = heat{}

// target returns the VNF as the attempt is to leave it.
func (h heat) target() nf.VNF {
	if t := h.r.record().Task; !h.r.undoes() {
		return t.After
	}
	return h.r.record().Task.Before
}

// place returns the stack's region and name.
func (h heat) place() (region, name string) {
	in := stackedIn(h.r.record().Task)
	return in.Region, in.Stack
}

// begin implements carrier. What is wrong with the templates is found before anything is
// recorded.
func (h heat) begin(ctx context.Context) error {
	if err := h.r.attempt.Held(ctx); err != nil {
		return err
	}
	region, name := h.place()
	to, op := h.target(), h.r.op().ID
	s := nf.Stack{Name: name, Attempt: op}
	if to.Instantiated != nil {
		var err error
		if s, err = h.stack(ctx, to, s); err != nil {
			return err
		}
	}
	if h.r.current() != op {
		if err := h.r.begun(ctx, op); err != nil {
			return err
		}
	}
	if to.Instantiated == nil {
		return h.r.m.cfg.Clouds.Delete(ctx, region, name)
	}
	defer h.r.attempt.Yield()()
	return h.r.m.cfg.Clouds.Apply(ctx, region, s)
}

// stack returns the stack that a VNF is to have.
func (h heat) stack(ctx context.Context, v nf.VNF, s nf.Stack) (nf.Stack, error) {
	in, rs, rec := v.Instantiated, h.r.m.resolve, h.r.record()
	flavor, err := rs.flavor(ctx, v.Running(), in.Flavor)
	if err != nil {
		return s, err
	}
	counts, err := countsOf(flavor, *in)
	if err != nil {
		return s, err
	}
	s.Params = nf.StackParams{VDUs: map[string]nf.StackVDU{}, Points: in.Points, Given: in.Params}
	for id, vdu := range flavor.VDUs {
		s.Params.VDUs[id] = nf.StackVDU{Flavor: vdu.Compute, Zone: in.Zones[id], Count: counts[id]}
	}
	if rec.Operation == nf.OccurrenceHeal {
		for _, c := range components(rec.Task.Before) {
			if len(rec.Task.Heal) == 0 || slices.Contains(rec.Task.Heal, c.ID()) {
				s.Replace = append(s.Replace, c.Resource)
			}
		}
	}
	return rs.cfg.Clouds.Stack(ctx, v.Running(), in.Flavor, s)
}

// countsOf returns the numbers of components of a VNF by VDU: those of its instantiation
// level, and of the steps of its aspects since then.
func countsOf(f tosca.Flavor, in nf.InstantiatedVNF) (map[string]int, error) {
	given, err := f.Counts(in.Level)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for id, vdu := range f.VDUs {
		out[id] = max(vdu.Initial, vdu.Min, 1)
	}
	maps.Copy(out, given)
	moved, err := f.Moved(in.Level, in.Scale)
	if err != nil {
		return nil, err
	}
	for id, n := range moved {
		out[id] += n
	}
	return out, nil
}

// wait implements carrier.
func (h heat) wait(ctx context.Context) error {
	defer h.r.attempt.Yield()()
	region, name := h.place()
	_, err := h.r.m.cfg.Clouds.Await(ctx, region, name, false)
	if h.target().Instantiated != nil {
		return err
	}
	if err == nil {
		err = nf.E(nf.Failed, "delete", "stack "+name, errors.New("it was not deleted"))
	}
	return nf.IgnoreNotFound(err)
}

// observe implements carrier.
func (h heat) observe(ctx context.Context) error {
	h.r.reading = true
	defer func() { h.r.reading = false }()
	region, name := h.place()
	servers, err := h.r.m.cfg.Clouds.Components(ctx, region, name)
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	in := stackedIn(h.r.record().Task)
	flavor, err := h.r.m.resolve.flavor(ctx, h.r.vnf.Running(), in.Flavor)
	if err != nil {
		return err
	}
	servers = slices.DeleteFunc(servers, func(c nf.VNFC) bool { _, is := flavor.VDUs[c.VDU]; return !is })
	return found(ctx, h.r, servers)
}

// active implements carrier.
func (h heat) active(context.Context) (bool, error) { return h.r.current() == h.r.op().ID, nil }

// stop implements carrier.
func (h heat) stop(ctx context.Context) error {
	if err := h.r.attempt.Held(ctx); err != nil {
		return err
	}
	region, name := h.place()
	attempt, err := h.awaited(ctx, region, name)
	deleted := h.target().Instantiated == nil && err != nil && nf.KindOf(err) == nf.NotFound
	switch {
	case deleted, err == nil && attempt == h.r.op().ID && h.target().Instantiated != nil:
		return h.r.journal.save(ctx, "", h.r.vnf, func(rec *record) { rec.Engine.Outcome = string(nf.Succeeded) })
	case err != nil && nf.KindOf(err) != nf.NotFound && nf.KindOf(err) != nf.Failed:
		return err
	}
	return nil
}

func (h heat) awaited(ctx context.Context, region, name string) (attempt string, err error) {
	defer h.r.attempt.Yield()()
	return h.r.m.cfg.Clouds.Await(ctx, region, name, true)
}

// stackedIn returns the VNF of a task as it is instantiated on an OpenStack cloud; nil if
// it is not.
func stackedIn(t task) *nf.InstantiatedVNF {
	for _, v := range []nf.VNF{t.After, t.Before} {
		if stacked(v) {
			return v.Instantiated
		}
	}
	return nil
}

// stacked reports whether the components of a VNF are servers of an OpenStack cloud.
func stacked(v nf.VNF) bool { return v.Instantiated != nil && v.Instantiated.Stack != "" }

// cloudHolding is the hold of a VNF on the OpenStack cloud that it is in.
func cloudHolding(v nf.VNF, region string) nf.Holding {
	h := holding(v, "")
	h.Region = region
	return h
}

// The additional parameters that select a user data script of Tacker, and the class whose
// behavior is built in.
const (
	userDataClass   = "lcm-operation-user-data-class"
	defaultUserData = "DefaultUserData"
)

// stacking makes an instantiation one on an OpenStack cloud.
func (rs resolver) stacking(ctx context.Context, v nf.VNF, in *nf.InstantiatedVNF, req nf.InstantiateVNFRequest) error {
	class, err := textOf(nf.Instantiate, v, req.Extra, userDataClass)
	if err != nil {
		return err
	}
	if class != "" && class != defaultUserData {
		return nf.E(nf.Unsupported, string(nf.Instantiate), "VNF "+v.ID, fmt.Errorf("user data scripts of a package are not run, and additionalParams.%s is not %s, which is built in", userDataClass, defaultUserData))
	}
	if err := rs.withoutJobs(ctx, v, *in); err != nil {
		return err
	}
	in.Stack = "vnf-" + v.ID
	for _, a := range req.Networks {
		if a.MAC != "" {
			return nf.E(nf.Unsupported, string(nf.Instantiate), "VNF "+v.ID, fmt.Errorf("extVirtualLinks has macAddress of the connection point %s, which virtual machines of OpenStack do not get", nf.Clip(strings.TrimSpace(a.Point), maxQuote)))
		}
		if in.Points == nil {
			in.Points = map[string]nf.StackPoint{}
		}
		p := in.Points[a.Point]
		if p.Network != "" && p.Network != a.Network {
			return invalid(nf.Instantiate, v, "extVirtualLinks", "the connection point %s is on two networks", nf.Clip(strings.TrimSpace(a.Point), maxQuote))
		}
		in.Points[a.Point] = nf.StackPoint{Network: a.Network, IPs: append(p.IPs, a.IPs...)}
	}
	return nil
}

// withoutJobs returns nf.Unsupported if a VNF has scripts that are Jobs elsewhere, at an operation
// that it can have: an OpenStack cloud runs no Jobs. An empty image of the Jobs says that none
// is to run.
func (rs resolver) withoutJobs(ctx context.Context, v nf.VNF, in nf.InstantiatedVNF) error {
	flavor, err := rs.flavor(ctx, v.Package, in.Flavor)
	if err != nil {
		return err
	}
	if image, given := in.Params[nf.ScriptImageParameter]; given && image == "" {
		return nil
	}
	for _, operation := range [...]string{"instantiate" + startSuffix, "instantiate" + endSuffix, "terminate" + startSuffix, "terminate" + endSuffix} {
		if s := flavor.Scripts[operation]; s.IsJob() {
			return nf.E(nf.Unsupported, string(nf.Instantiate), "VNF "+v.ID, fmt.Errorf("the script %s of operation %s is a Job, and OpenStack clouds run no Jobs; give its artifact the type %s or %s, or set additionalParams.%s to an empty text so that no Job runs",
				nf.Clip(s.File, maxQuote), operation, nf.SSHScript, nf.WebhookScript, nf.ScriptImageParameter))
		}
	}
	return nil
}
