package onap

import (
	"context"
	"net/http"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// queryStatus is the result of a query for a region's objects.
type queryStatus struct {
	Count   int              `json:"resourceCount"`
	Objects []resourceStatus `json:"resourcesStatus"`
}

// queries serves the objects of regions and of instances.
type queries struct {
	vnfs    *vnfs
	regions Regions
	live    Live
}

func (qs queries) routes(on route) {
	on(http.MethodGet, "/v1/query", qs.region)
	on(http.MethodGet, "/v1/instance/{instance}/query", qs.instance)
}

// queryOf returns the query in a request's parameters. It rejects a request
// without one of the required parameters.
func queryOf(r *http.Request, required ...string) (Query, error) {
	values := r.URL.Query()
	for _, name := range required {
		if values.Get(name) == "" {
			return Query{}, refuse(http.StatusBadRequest, "Missing "+name+" mandatory parameter")
		}
	}
	return Query{
		APIVersion: values.Get("ApiVersion"), Kind: values.Get("Kind"), Namespace: values.Get("Namespace"), Name: values.Get("Name"), Labels: values.Get("Labels"),
	}, nil
}

func (qs queries) region(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "CloudRegion", "ApiVersion", "Kind")
	if err != nil {
		return err
	}
	region := r.URL.Query().Get("CloudRegion")
	if _, err := qs.regions.Region(r.Context(), region); err != nil {
		return fail("Query Resources: Getting CloudRegion Information", err)
	}
	found, err := qs.live.Find(r.Context(), region, q)
	if err != nil {
		return fail("Query Resources", err)
	}
	objects := statusesOf(found)
	return answer(w, http.StatusOK, queryStatus{Count: len(objects), Objects: objects})
}

// statusesOf returns the status of each object.
func statusesOf(objects []map[string]any) []resourceStatus {
	out := []resourceStatus{}
	for _, object := range objects {
		out = append(out, statusOf(object))
	}
	return out
}

func (qs queries) instance(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r, "ApiVersion", "Kind")
	if err != nil {
		return err
	}
	v, err := qs.vnfs.of(r)
	if err != nil {
		return fail("Get Instance", err)
	}
	q.Labels = v.selector(q.Labels)
	found, err := findIn(r.Context(), qs.live, v, q)
	if err != nil {
		return fail("Query Resources", err)
	}
	objects := statusesOf(found)
	return answer(w, http.StatusOK, instanceStatus{Request: v.shown(), Count: len(objects), Objects: objects})
}

// findIn returns the objects that a query selects in the namespaces of an
// instance. Cluster-scoped objects are returned once.
func findIn(ctx context.Context, live Live, v vnf, q Query) ([]map[string]any, error) {
	var out []map[string]any
	for _, q.Namespace = range append([]string{v.Namespace}, v.Entered...) {
		found, err := live.FindOf(ctx, v.Instance, q)
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

// selector adds the instance's owner label to a selector without that label. In
// a selector with that label it replaces the instance's id, which differs from
// the label's value after a move.
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
