package onap

import (
	"context"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// queryStatus is what a query for a region's objects finds.
type queryStatus struct {
	Count   int              `json:"resourceCount"`
	Objects []resourceStatus `json:"resourcesStatus"`
}

func (a *API) queryRoutes(r *mux.Router) {
	a.on(r, http.MethodGet, "/v1/query", a.query)
}

// queryOf reads a query out of a request. Some of its parameters are required.
func queryOf(r *http.Request, required ...string) (Query, error) {
	values := r.URL.Query()
	for _, name := range required {
		if values.Get(name) == "" {
			return Query{}, refuse(http.StatusBadRequest, "Missing "+name+" mandatory parameter")
		}
	}
	return Query{
		Region: values.Get("CloudRegion"), APIVersion: values.Get("ApiVersion"), Kind: values.Get("Kind"),
		Namespace: values.Get("Namespace"), Name: values.Get("Name"), Labels: values.Get("Labels"),
	}, nil
}

func (a *API) query(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "CloudRegion", "ApiVersion", "Kind")
	if err != nil {
		return err
	}
	if _, err := a.cfg.Regions.Region(r.Context(), q.Region); err != nil {
		return fail("Query Resources: Getting CloudRegion Information", err)
	}
	mine, err := a.readable(r.Context(), q.Region)
	if err != nil {
		return fail("Query Resources", err)
	}
	found, err := a.cfg.Live.Find(r.Context(), q)
	if err != nil {
		return fail("Query Resources", err)
	}
	objects := statuses(found, mine)
	return answer(w, http.StatusOK, queryStatus{Count: len(objects), Objects: objects})
}

func statuses(objects []map[string]any, shown func(map[string]any) bool) []resourceStatus {
	out := []resourceStatus{}
	for _, object := range objects {
		if shown(object) {
			out = append(out, statusOf(object))
		}
	}
	return out
}

// readable returns which objects of a region the caller may look at: whoever may
// register the region has a way into all of it, and others see what belongs to
// the instances that they see.
func (a *API) readable(ctx context.Context, region string) (func(map[string]any) bool, error) {
	scope := nf.Scope{Region: region}
	err := a.cfg.Access.May(ctx, nf.WriteRegion, scope, region)
	if err == nil {
		return func(map[string]any) bool { return true }, nil
	}
	if nf.KindOf(err) != nf.Forbidden {
		return nil, err
	}
	if err := a.cfg.Access.May(ctx, nf.ReadRegion, scope, region); err != nil {
		return nil, err
	}
	all, err := a.cfg.Instances.Instances(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, in := range all {
		seen[in.ID] = in.Region == region
	}
	return func(object map[string]any) bool {
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		owner, _ := labels[nf.OwnerLabel].(string)
		return seen[owner]
	}, nil
}

func (a *API) queryInstance(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "ApiVersion", "Kind")
	if err != nil {
		return err
	}
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	shown := func(map[string]any) bool { return true }
	if strings.Contains(q.Labels, nf.OwnerLabel) { // it may be another's
		if shown, err = a.readable(r.Context(), v.Region); err != nil {
			return fail("Query Resources", err)
		}
	}
	q.Region, q.Labels = v.Region, v.selector(q.Labels)
	found, err := a.findIn(r.Context(), v, q)
	if err != nil {
		return fail("Query Resources", err)
	}
	objects := statuses(found, shown)
	return answer(w, http.StatusOK, instanceStatus{Request: v.request, Count: len(objects), Objects: objects})
}

// findIn returns the objects that a query selects in the namespaces of an
// instance. Those of a cluster-scoped kind are in none.
func (a *API) findIn(ctx context.Context, v vnf, q Query) ([]map[string]any, error) {
	var out []map[string]any
	for _, q.Namespace = range append([]string{v.Namespace}, v.Entered...) {
		found, err := a.cfg.Live.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if len(found) > 0 {
			if metadata, _ := found[0]["metadata"].(map[string]any); metadata["namespace"] == nil {
				return found, nil
			}
		}
	}
	return out, nil
}

// selector adds the instance's label to a selector that does not mention it. Of
// an instance that was moved, clients know the id and not the label.
func (v vnf) selector(labels string) string {
	mine := nf.OwnerLabel + "=" + v.ID
	switch {
	case labels == "":
		return mine
	case !strings.Contains(labels, nf.OwnerLabel):
		return labels + "," + mine
	}
	terms := strings.Split(labels, ",")
	for i, term := range terms {
		if name, value, ok := strings.Cut(strings.ReplaceAll(term, "==", "="), "="); ok && strings.TrimSpace(name) == nf.OwnerLabel && strings.TrimSpace(value) == v.id {
			terms[i] = mine
		}
	}
	return strings.Join(terms, ",")
}
