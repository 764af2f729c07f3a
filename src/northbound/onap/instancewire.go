package onap

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// texts is an object of strings. A null value counts as absent: SO sends null
// for unset values.
type texts map[string]string

// UnmarshalJSON rejects a value that is not a string.
func (t *texts) UnmarshalJSON(document []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(document, &values); err != nil {
		return err
	}
	if values == nil {
		return nil
	}
	*t = make(texts, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw := values[name]
		if string(raw) == "null" {
			continue
		}
		var text string
		err := json.Unmarshal(raw, &text)
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Field = name
		}
		if err != nil {
			return err
		}
		(*t)[name] = text
	}
	return nil
}

// instanceRequest is the request for an instance, which is also part of every
// response. Some clients reject a response with additional fields in it.
type instanceRequest struct {
	Definition string `json:"rb-name"`
	Version    string `json:"rb-version"`
	Profile    string `json:"profile-name"`
	Release    string `json:"release-name"`
	Region     string `json:"cloud-region"`
	Labels     texts  `json:"labels"`
	Overrides  texts  `json:"override-values"`
}

// check rejects a request without a required field.
func (q instanceRequest) check() error {
	missing := func(what string) error {
		return refuse(http.StatusUnprocessableEntity, "CreateVnfRequest bad request: Invalid/Missing "+what+" in POST request")
	}
	switch {
	case q.Region == "":
		return missing("CloudRegion")
	case q.Definition == "" || q.Version == "":
		return missing("resource bundle parameters")
	case q.Profile == "":
		return missing("profile name")
	}
	return nil
}

// equal reports whether two requests are equal.
func (q instanceRequest) equal(o instanceRequest) bool {
	if !maps.Equal(q.Labels, o.Labels) || !maps.Equal(q.Overrides, o.Overrides) {
		return false
	}
	q.Labels, q.Overrides, o.Labels, o.Overrides = nil, nil, nil, nil
	return reflect.DeepEqual(q, o)
}

// gvk names a kind of objects.
type gvk struct {
	Group   string
	Version string
	Kind    string
}

// resource names an object of an instance.
type resource struct {
	GVK  gvk
	Name string
}

// instanceSummary is an instance in a list.
type instanceSummary struct {
	ID        string          `json:"id"`
	Request   instanceRequest `json:"request"`
	Release   string          `json:"release-name"`
	Namespace string          `json:"namespace"`
}

// instanceResponse is an instance in a response. Some clients reject additional
// fields.
type instanceResponse struct {
	ID        string          `json:"id"`
	Request   instanceRequest `json:"request"`
	Namespace string          `json:"namespace"`
	Release   string          `json:"release-name"`
	Resources []resource      `json:"resources"`
}

// instanceFull is an instance with all details.
type instanceFull struct {
	ID        string          `json:"id"`
	Request   instanceRequest `json:"request"`
	Namespace string          `json:"namespace"`
	Status    string          `json:"status"`
	Release   string          `json:"release-name"`
	Resources []resource      `json:"resources"`
	Hooks     []hook          `json:"hooks"`
	Progress  string          `json:"hook-progress"`

	PreInstallTimeout  int64
	PostInstallTimeout int64
	PreDeleteTimeout   int64
	PostDeleteTimeout  int64
	PreUpgradeTimeout  int64
	PostUpgradeTimeout int64
}

func (v vnf) summary() instanceSummary {
	return instanceSummary{ID: v.id, Request: v.shown(), Release: v.Release, Namespace: v.Namespace}
}

func (v vnf) response() instanceResponse {
	return instanceResponse{
		ID: v.id, Request: v.shown(), Namespace: v.Namespace, Release: v.Release, Resources: v.resources(),
	}
}

func (v vnf) full(op nf.Operation, hooks []hook) instanceFull {
	t := timeoutsOf(v.Annotations)
	return instanceFull{
		ID: v.id, Request: v.shown(), Namespace: v.Namespace, Status: word(v.Instance, op), Release: v.Release,
		Resources: v.resources(), Hooks: hooks, Progress: progress(op, hooks),
		PreInstallTimeout: t["pre-install"], PostInstallTimeout: t["post-install"],
		PreDeleteTimeout: t["pre-delete"], PostDeleteTimeout: t["post-delete"],
		PreUpgradeTimeout: t["pre-upgrade"], PostUpgradeTimeout: t["post-upgrade"],
	}
}

// resources lists the objects of the instance, except those of its hooks.
func (v vnf) resources() []resource {
	out := []resource{}
	for _, ref := range refsOf(v.Instance) {
		out = append(out, resource{GVK: gvk{ref.Group, ref.Version, ref.Kind}, Name: ref.Name})
	}
	return out
}

// refsOf lists the objects of an instance, except those of its hooks.
func refsOf(in nf.Instance) []nf.Ref {
	var out []nf.Ref
	for _, it := range in.Inventory {
		if !it.Hook {
			out = append(out, it.Ref)
		}
	}
	return out
}
