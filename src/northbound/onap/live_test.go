package onap_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// search is a query for the objects of a region.
type search struct {
	region string
	query  onap.Query
}

// live stands in for the regions: every object of every instance is there.
type live struct {
	engine  *engine
	may     permit
	gone    map[string]bool  // names of objects that are not there
	more    []map[string]any // further objects
	served  func(kind string) bool
	refused map[string]error // by kind
	hooks   []onap.PlannedHook
	data    bool // a ConfigMap has what the chart of the transcripts gives it
	asked   []search
	err     error
	mu      sync.Mutex
}

var _ onap.Live = (*live)(nil)

func object(ref nf.Ref, owner string) map[string]any {
	labels := map[string]any{}
	if owner != "" {
		labels[nf.OwnerLabel] = owner
	}
	return map[string]any{
		"apiVersion": ref.APIVersion(), "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace, "labels": labels},
	}
}

func (l *live) object(in nf.Instance, ref nf.Ref) map[string]any {
	out := object(ref, in.ID)
	if ref.Kind != "ConfigMap" || !l.data {
		return out
	}
	data := map[string]any{"greeting": "good morning", "port": "80"}
	if greeting, ok := in.Inputs.Overrides["greeting"]; ok {
		data["greeting"] = greeting
	}
	for _, am := range in.Amendments {
		if rules, ok := am.Inputs.Parameters["rules"].(map[string]any); ok {
			data["port"] = rules["port"]
		}
	}
	out["data"] = data
	return out
}

func (l *live) Objects(_ context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	out := make([]map[string]any, len(refs))
	for i, ref := range refs {
		if !l.gone[ref.Name] && !l.gone[ref.Kind] {
			out[i] = l.object(in, ref)
		}
	}
	return out, l.err
}

// Find returns all objects to a caller that may register the region, and those of
// id1 to others.
func (l *live) Find(ctx context.Context, region string, q onap.Query) ([]map[string]any, error) {
	var denied error
	if l.may(ctx, nf.WriteRegion, nf.Scope{Region: region}) != nil {
		denied = l.may(ctx, nf.ReadRegion, nf.Scope{Region: region})
	}
	return l.seen(ctx, region, q, denied)
}

func (l *live) FindOf(ctx context.Context, in nf.Instance, q onap.Query) ([]map[string]any, error) {
	return l.seen(ctx, in.Region, q, nil)
}

func (l *live) seen(ctx context.Context, region string, q onap.Query, denied error) ([]map[string]any, error) {
	if denied != nil {
		return nil, denied
	}
	found, err := l.find(ctx, region, q)
	if l.may(ctx, nf.WriteRegion, nf.Scope{Region: region}) == nil {
		return found, err
	}
	return slices.DeleteFunc(found, func(o map[string]any) bool {
		return o["metadata"].(map[string]any)["labels"].(map[string]any)[nf.OwnerLabel] != "id1"
	}), err
}

func (l *live) find(ctx context.Context, region string, q onap.Query) ([]map[string]any, error) {
	l.mu.Lock()
	l.asked = append(l.asked, search{region, q})
	l.mu.Unlock()
	if l.served != nil && !l.served(q.Kind) {
		return nil, nf.E(nf.Unsupported, "list", q.Kind+" objects", nil)
	}
	if err := l.refused[q.Kind]; err != nil {
		return nil, err
	}
	var out []map[string]any
	instances, err := l.engine.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range instances {
		for _, it := range in.Inventory {
			if !it.Hook && it.Kind == q.Kind && it.APIVersion() == q.APIVersion && strings.Contains(q.Labels, nf.OwnerLabel+"="+in.ID) {
				out = append(out, l.object(in, it.Ref))
			}
		}
	}
	for _, o := range l.more {
		labels := o["metadata"].(map[string]any)["labels"].(map[string]any)
		owner, _ := labels[nf.OwnerLabel].(string)
		if o["kind"] == q.Kind && o["apiVersion"] == q.APIVersion && (!strings.Contains(q.Labels, nf.OwnerLabel) || strings.Contains(q.Labels, nf.OwnerLabel+"="+owner)) {
			out = append(out, o)
		}
	}
	return out, l.err
}

func (l *live) Hooks(context.Context, nf.Instance) ([]onap.PlannedHook, error) { return l.hooks, l.err }
