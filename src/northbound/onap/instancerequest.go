package onap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Annotations in which the API stores its data about an instance.
const (
	requestAnnotation    = "onap/request"    // the request, as it is shown
	profileAnnotation    = "onap/profile"    // the profile's data that is needed later
	idAnnotation         = "onap/id"         // the id assigned by this API if it differs from the record's
	generationAnnotation = "onap/generation" // changes with each upgrade
	configAnnotation     = "onap/config/"    // followed by a configuration's name: its newest version
)

// instanceIDKey is the override that passes an instance's id to its chart.
const instanceIDKey = "k8s-rb-instance-id"

// hookTimeouts are the default timeouts of an event's hooks, in seconds.
var hookTimeouts = map[string]int64{
	"pre-install": 60, "post-install": 600, "pre-upgrade": 60, "post-upgrade": 600, "pre-delete": 60, "post-delete": 600,
}

// storedProfile is the data of a profile that an instance needs for its whole
// life, even if the profile is deleted.
type storedProfile struct {
	Extra []bundle.Type `json:"extra,omitempty"`
}

// requestOf returns the request that created an instance, or false if another
// API created it.
func requestOf(in nf.Instance) (q instanceRequest, ours bool, err error) {
	annotation, ours := in.Annotations[requestAnnotation]
	if !ours {
		return q, false, nil
	}
	if err := json.Unmarshal([]byte(annotation), &q); err != nil {
		return q, true, fmt.Errorf("cannot read the request of VNF instance %s: %w", in.ID, err)
	}
	return q, true, nil
}

// idOf returns the id of an instance in this API.
func idOf(in nf.Instance) string { return cmp.Or(in.Annotations[idAnnotation], in.ID) }

// creator creates instances.
type creator struct {
	vnfs    *vnfs
	bundles Bundles
	imports Imports
	engine  Changes
	runner  *runner
	newID   func() string
}

// instantiate creates an instance. Complete adds to its spec what the request does not
// have. It returns the instance and its operation once all objects are applied.
func (c *creator) instantiate(r *http.Request, req instanceRequest, complete func(*nf.Spec)) (vnf, nf.Operation, error) {
	ctx, id := r.Context(), c.newID()
	wanted, err := c.request(r, req, id, nf.DefaultProject)
	if err != nil {
		return vnf{}, nf.Operation{}, err
	}
	complete(&wanted.Spec)
	op, err := c.engine.Instantiate(ctx, wanted)
	if err != nil {
		return vnf{}, op, refusedPackage("Create Kubernetes Resources", err)
	}
	// A failure after everything is applied, of a hook, leaves what is applied.
	if op, err = c.runner.await(ctx, op, northbound.Applied); err != nil && !northbound.Applied(op) {
		return vnf{}, op, fail("Create Kubernetes Resources", err)
	}
	in, err := c.vnfs.instances.Instance(ctx, op.Subject.ID)
	if err != nil {
		return vnf{}, op, fail("Get Instance", err)
	}
	return vnf{Instance: in, id: id, alias: bundle.Alias{ID: id, Engine: id}, request: req}, op, nil
}

// request converts ONAP's request to the engine's. Id becomes the id of the new
// instance, in the engine and in the chart's values.
func (c *creator) request(r *http.Request, q instanceRequest, id, project string) (nf.InstantiateRequest, error) {
	ctx := r.Context()
	bundles, err := c.bundles.ForNew(ctx, project, q.Region)
	if err != nil {
		return nf.InstantiateRequest{}, err
	}
	if err := q.checkMasks(); err != nil {
		return nf.InstantiateRequest{}, err
	}
	seconds, err := readTimeouts(q.Overrides)
	if err != nil {
		return nf.InstantiateRequest{}, err
	}
	key := bundle.Key{Name: q.Definition, Version: q.Version, Profile: q.Profile}
	if _, err := bundles.Profile(ctx, key); err != nil {
		return nf.InstantiateRequest{}, onlyIf(nf.NotFound, err, "Unable to find Profile to create instance", "Error resolving helm charts")
	}
	// Check before composing: the caller may not see the region.
	if _, err := c.imports.Use(ctx, mux.Vars(r)["cloud-owner"], q.Region); err != nil {
		return nf.InstantiateRequest{}, fail("Getting CloudRegion Information", err)
	}
	composed, err := bundles.Compose(ctx, key)
	if err != nil {
		return nf.InstantiateRequest{}, onlyIf(nf.NotFound, err, "Unable to find Profile to create instance", "Error resolving helm charts")
	}
	spec, err := specOf(q, composed, id)
	if err != nil {
		return nf.InstantiateRequest{}, err
	}
	for event, n := range seconds {
		spec.Annotations[nf.HookTimeoutAnnotation+event] = (time.Duration(max(n, 0)) * time.Second).String()
	}
	spec.Annotations[generationAnnotation] = c.newID()
	return nf.InstantiateRequest{
		Spec: spec, ID: id, Region: q.Region, Project: project, Namespace: cmp.Or(composed.Profile.Namespace, "default"),
		Options: c.runner.options(r, seconds["pre-install"]+seconds["post-install"]),
	}, nil
}

// specOf returns the instance spec for a request.
func specOf(q instanceRequest, c bundle.Composed, id string) (nf.Spec, error) {
	asked, err := json.Marshal(q)
	if err != nil {
		return nf.Spec{}, fmt.Errorf("cannot store the request: %w", err)
	}
	sp, err := json.Marshal(storedProfile{Extra: c.Profile.Extra})
	if err != nil {
		return nf.Spec{}, fmt.Errorf("cannot store the profile: %w", err)
	}
	overrides := maps.Clone(map[string]string(q.Overrides))
	if overrides == nil {
		overrides = map[string]string{}
	}
	overrides[instanceIDKey] = id
	return nf.Spec{
		Package: c.Package, Release: cmp.Or(q.Release, c.Profile.Release, c.Profile.Name),
		Inputs: nf.Inputs{Overrides: overrides, KubeVersion: c.Profile.KubeVersion, ObjectLabels: c.Profile.Labels},
		Annotations: map[string]string{
			requestAnnotation: string(asked), profileAnnotation: string(sp),
		},
	}, nil
}

// readTimeouts returns the timeouts of hooks from a request's overrides. It
// rejects a value that is not a number, instead of ignoring it.
func readTimeouts(overrides texts) (map[string]int64, error) {
	const longest = int64(nf.MaxTimeout / time.Second)
	out := maps.Clone(hookTimeouts)
	for event := range hookTimeouts {
		key := "k8s-rb-instance-" + event + "-timeout"
		given, ok := overrides[key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(given), 10, 64)
		if err != nil || n > longest {
			return nil, refuse(http.StatusUnprocessableEntity, fmt.Sprintf("%s is not a number of seconds up to %d", key, longest))
		}
		out[event] = n
	}
	return out, nil
}

// timeoutsOf returns the stored timeouts of hooks, in seconds.
func timeoutsOf(annotations map[string]string) map[string]int64 {
	out := map[string]int64{}
	for event := range hookTimeouts {
		if d, err := time.ParseDuration(annotations[nf.HookTimeoutAnnotation+event]); err == nil {
			out[event] = int64(d / time.Second)
		}
	}
	return out
}

// refusedPackage returns the error for a change that was not accepted. Errors
// of the chart or its values have a different text in ONAP.
func refusedPackage(what string, err error) error {
	switch nf.KindOf(err) {
	case nf.Invalid, nf.Unsupported, nf.NotFound:
		return fail("Error resolving helm charts", err)
	default:
		return fail(what, err)
	}
}

// storedProfileOf returns the stored data of an instance's profile.
func storedProfileOf(in nf.Instance) (storedProfile, error) {
	var sp storedProfile
	if annotation, ok := in.Annotations[profileAnnotation]; ok {
		if err := json.Unmarshal([]byte(annotation), &sp); err != nil {
			return sp, fmt.Errorf("cannot read the profile of VNF instance %s: %w", in.ID, err)
		}
	}
	return sp, nil
}

// ExtraKinds returns the additional kinds of objects that the profile counts as
// an instance's although other controllers create them. Name and namespace are
// empty.
func ExtraKinds(in nf.Instance) ([]nf.Ref, error) {
	sp, err := storedProfileOf(in)
	if err != nil {
		return nil, err
	}
	var out []nf.Ref
	for _, t := range sp.Extra {
		out = append(out, nf.Ref{Group: t.Group, Version: t.Version, Kind: t.Kind})
	}
	return out, nil
}
