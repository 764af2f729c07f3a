package onap

import (
	"context"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// definition is a resource bundle definition, as clients see it.
type definition struct {
	Name        string            `json:"rb-name"`
	Version     string            `json:"rb-version"`
	Chart       string            `json:"chart-name"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
}

// deletedLabel is a label that clients see of a definition whose service SDC has deleted.
// It is not stored: the form of ONAP has no place for it.
const deletedLabel = "sdc_deleted_at"

func fromDefinition(d bundle.Definition) definition {
	out := definition{Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels}
	if d.Origin != nil && !d.Origin.Deleted.IsZero() {
		out.Labels = maps.Clone(d.Labels)
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[deletedLabel] = d.Origin.Deleted.UTC().Format(time.RFC3339)
	}
	return out
}

func toDefinition(d definition) bundle.Definition {
	delete(d.Labels, deletedLabel)
	return bundle.Definition{Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels}
}

const getDefinitionFailed = "Get Resource Bundle definition"

// definitions serves resource bundle definitions.
type definitions struct {
	bundles  Bundles
	archives archives
	strict   bool
}

func (ds definitions) routes(on route) {
	const one = "/v1/rb/definition/{rb-name}/{rb-version}"
	on(http.MethodPost, "/v1/rb/definition", ds.create)
	on(http.MethodGet, "/v1/rb/definition", ds.list)
	on(http.MethodGet, "/v1/rb/definition/{rb-name}", ds.list)
	on(http.MethodGet, one, ds.get)
	on(http.MethodPut, one, ds.update)
	on(http.MethodDelete, one, ds.remove)
	on(http.MethodPost, one+"/content", ds.upload)
}

// emptyBody returns the error for a request without a body.
func emptyBody() error { return refuse(http.StatusBadRequest, "Empty body") }

func (ds definitions) create(w http.ResponseWriter, r *http.Request) error {
	bundles, err := ds.bundles.Write(r.Context())
	if err != nil {
		return err
	}
	in, err := decode[definition](r, emptyBody())
	switch {
	case err != nil:
		return err
	case in.Name == "":
		return refuse(http.StatusBadRequest, "Missing name in request")
	case in.Version == "":
		return refuse(http.StatusBadRequest, "Missing version in request")
	}
	made, err := bundles.CreateDefinition(r.Context(), toDefinition(in))
	if err != nil {
		return onlyIf(nf.Exists, err, "Definition already exists", "Creating DB Entry")
	}
	return answer(w, http.StatusCreated, fromDefinition(made))
}

// listDefinitions lists the definitions of a name, or all. As in ONAP, it is an
// error if there are no definitions at all, and the result is null if there are
// none of the name.
func (ds definitions) list(w http.ResponseWriter, r *http.Request) error {
	bundles, err := ds.bundles.Read(r.Context())
	if err != nil {
		return err
	}
	all, err := bundles.Definitions(r.Context(), "")
	if err != nil {
		return fail("Listing Resource Bundle Definitions", err)
	}
	if len(all) == 0 {
		return none(w, ds.strict, "Listing Resource Bundle Definitions: "+noObjects+"defmetadata")
	}
	name, one := mux.Vars(r)["rb-name"]
	var out []definition
	if ds.strict {
		out = []definition{}
	}
	for _, d := range all {
		if !one || d.Name == name {
			out = append(out, fromDefinition(d))
		}
	}
	return answer(w, http.StatusOK, out)
}

// none answers a request to list an empty collection.
func none(w http.ResponseWriter, strict bool, text string) error {
	if strict {
		return answer(w, http.StatusOK, []struct{}{})
	}
	return failAs(text, nf.E(nf.NotFound, "list", "what is asked for", nil))
}

func (ds definitions) get(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ds.bundles.Read(r.Context(), name, version)
	if err != nil {
		return err
	}
	d, err := bundles.Definition(r.Context(), name, version)
	if err != nil {
		return fail(getDefinitionFailed, err)
	}
	return answer(w, http.StatusOK, fromDefinition(d))
}

func bundleOf(r *http.Request) (name, version string) {
	vars := mux.Vars(r)
	return vars["rb-name"], vars["rb-version"]
}

func (ds definitions) update(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ds.bundles.Write(r.Context(), name, version)
	if err != nil {
		return err
	}
	in, err := decode[definition](r, emptyBody())
	if err != nil {
		return err
	}
	if err := matchPath(&in.Version, version, "RB version mismatch"); err != nil {
		return err
	}
	if err := matchPath(&in.Name, name, "RB name mismatch"); err != nil {
		return err
	}
	changed, err := bundles.UpdateDefinition(r.Context(), toDefinition(in))
	if err != nil {
		return onlyIf(nf.NotFound, err, "Definition does not exists", "Updating DB Entry")
	}
	return answer(w, http.StatusCreated, fromDefinition(changed))
}

// matchPath sets a name to the one in the path, and rejects a different one in
// the body.
func matchPath(given *string, path, text string) error {
	if *given != "" && *given != path {
		return refuse(http.StatusBadRequest, text)
	}
	*given = path
	return nil
}

func (ds definitions) remove(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ds.bundles.Write(r.Context(), name, version)
	if err != nil {
		return err
	}
	if err := bundles.RemoveDefinition(r.Context(), name, version); err != nil {
		return fail("Delete Resource Bundle Definition", err)
	}
	return done(w, http.StatusNoContent)
}

func (ds definitions) upload(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ds.bundles.Write(r.Context(), name, version)
	if err != nil {
		return err
	}
	return ds.archives.put(w, r, "Invalid Definition ID provided: "+getDefinitionFailed+": "+noDocuments, func(ctx context.Context, archive io.Reader) error {
		return bundles.UploadDefinition(ctx, name, version, archive)
	})
}
