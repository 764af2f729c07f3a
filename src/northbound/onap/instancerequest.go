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

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// What the API notes in the annotations of an instance.
const (
	requestNote    = "onap/request"    // the request, as it is shown
	profileNote    = "onap/profile"    // what its profile says of the time after
	idNote         = "onap/id"         // the id that this API gave, where that of the record is another
	generationNote = "onap/generation" // changes with each upgrade
	configNote     = "onap/config/"    // and a configuration's name: what is in force of it
	timeoutNote    = "hook-timeout/"   // and an event: how long its hooks may take
)

// instanceIDKey is the override that tells a chart its instance's id.
const instanceIDKey = "k8s-rb-instance-id"

// hookTimeouts are how long the hooks of an event may take, in seconds, when a
// request does not say otherwise.
var hookTimeouts = map[string]int64{
	"pre-install": 60, "post-install": 600, "pre-upgrade": 60, "post-upgrade": 600, "pre-delete": 60, "post-delete": 600,
}

// profileMemo is what of a profile counts for as long as an instance lives,
// which may be longer than the profile does.
type profileMemo struct {
	Extra []bundle.Type `json:"extra,omitempty"`
}

// requestOf returns the request that an instance was asked for with; false when
// that was not here.
func requestOf(in nf.Instance) (q instanceRequest, ours bool, err error) {
	note, ours := in.Annotations[requestNote]
	if !ours {
		return q, false, nil
	}
	if err := json.Unmarshal([]byte(note), &q); err != nil {
		return q, true, fmt.Errorf("cannot read the request of VNF instance %s: %w", in.ID, err)
	}
	return q, true, nil
}

// idOf returns the id under which this API knows an instance.
func idOf(in nf.Instance) string { return cmp.Or(in.Annotations[idNote], in.ID) }

// instantiation makes the engine's request of ONAP's. Id is the new instance's,
// in the engine and in its chart's values.
func (a *API) instantiation(r *http.Request, q instanceRequest, id string) (nf.InstantiateRequest, error) {
	ctx := r.Context()
	if err := a.cfg.Access.May(ctx, nf.CreateInstance, nf.Scope{Project: nf.DefaultProject, Region: q.Region}); err != nil {
		return nf.InstantiateRequest{}, err
	}
	if err := q.checkMasks(); err != nil {
		return nf.InstantiateRequest{}, err
	}
	if err := a.readBundle(r); err != nil {
		return nf.InstantiateRequest{}, err
	}
	seconds, err := readTimeouts(q.Overrides)
	if err != nil {
		return nf.InstantiateRequest{}, err
	}
	key := bundle.Key{Name: q.Definition, Version: q.Version, Profile: q.Profile}
	if _, err := a.cfg.Bundles.Profile(ctx, key); err != nil {
		return nf.InstantiateRequest{}, onlyIf(nf.NotFound, err, "Unable to find Profile to create instance", "Error resolving helm charts")
	}
	// Before anything is composed: the caller may not see the region.
	if _, err := a.cfg.Regions.Region(ctx, q.Region); err != nil {
		return nf.InstantiateRequest{}, fail("Getting CloudRegion Information", err)
	}
	composed, err := a.cfg.Bundles.Compose(ctx, key)
	if err != nil {
		return nf.InstantiateRequest{}, onlyIf(nf.NotFound, err, "Unable to find Profile to create instance", "Error resolving helm charts")
	}
	spec, err := specOf(q, composed, id)
	if err != nil {
		return nf.InstantiateRequest{}, err
	}
	for event, n := range seconds {
		spec.Annotations[timeoutNote+event] = (time.Duration(max(n, 0)) * time.Second).String()
	}
	spec.Annotations[generationNote] = a.cfg.NewID()
	return nf.InstantiateRequest{
		Spec: spec, ID: id, Region: q.Region, Namespace: cmp.Or(composed.Profile.Namespace, "default"),
		Options: a.options(r, seconds["pre-install"]+seconds["post-install"]),
	}, nil
}

// specOf returns what a request wants an instance to be.
func specOf(q instanceRequest, c bundle.Composed, id string) (nf.Spec, error) {
	asked, err := json.Marshal(q)
	if err != nil {
		return nf.Spec{}, fmt.Errorf("cannot keep the request: %w", err)
	}
	memo, err := json.Marshal(profileMemo{Extra: c.Profile.Extra})
	if err != nil {
		return nf.Spec{}, fmt.Errorf("cannot keep the profile: %w", err)
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
			requestNote: string(asked), profileNote: string(memo),
		},
	}, nil
}

// options say how a change of the API is carried out: it is done when everything
// has been applied, and what failed before is taken back. Hooks are given their
// seconds.
func (a *API) options(r *http.Request, seconds int64) nf.Options {
	const applying = 10 * time.Minute
	return nf.Options{
		OnFailure: nf.Undo, NoWait: true, Trace: a.cfg.Trace(r),
		Timeout: min(time.Duration(max(seconds, 0))*time.Second+applying, nf.MaxTimeout),
	}
}

// readTimeouts takes the timeouts of hooks out of a request's overrides. One
// that is not a number is an error, and not a reason to forget the others.
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

// timeoutsOf returns what was noted of them, in seconds.
func timeoutsOf(annotations map[string]string) map[string]int64 {
	out := map[string]int64{}
	for event := range hookTimeouts {
		if d, err := time.ParseDuration(annotations[timeoutNote+event]); err == nil {
			out[event] = int64(d / time.Second)
		}
	}
	return out
}

// refusedPackage tells why a change was not accepted: of what is wrong with the
// chart or the values for it, ONAP speaks in other words.
func refusedPackage(what string, err error) error {
	switch nf.KindOf(err) {
	case nf.Invalid, nf.Unsupported, nf.NotFound:
		return fail("Error resolving helm charts", err)
	default:
		return fail(what, err)
	}
}

// memoOf returns what was noted of an instance's profile.
func memoOf(in nf.Instance) (profileMemo, error) {
	var memo profileMemo
	if note, ok := in.Annotations[profileNote]; ok {
		if err := json.Unmarshal([]byte(note), &memo); err != nil {
			return memo, fmt.Errorf("cannot read the profile of VNF instance %s: %w", in.ID, err)
		}
	}
	return memo, nil
}

// ExtraKinds returns the kinds of the objects that count as an instance's though
// it is others that make them, by its profile. Name and namespace are empty.
func ExtraKinds(in nf.Instance) ([]nf.Ref, error) {
	memo, err := memoOf(in)
	if err != nil {
		return nil, err
	}
	var out []nf.Ref
	for _, t := range memo.Extra {
		out = append(out, nf.Ref{Group: t.Group, Version: t.Version, Kind: t.Kind})
	}
	return out, nil
}
