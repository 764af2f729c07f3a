package onap

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// definition is a resource bundle definition as clients see it.
type definition struct {
	Name        string            `json:"rb-name"`
	Version     string            `json:"rb-version"`
	Chart       string            `json:"chart-name"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
}

func fromDefinition(d bundle.Definition) definition {
	return definition{Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels}
}

func toDefinition(d definition) bundle.Definition {
	return bundle.Definition{Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels}
}

const getDefinitionFailed = "Get Resource Bundle definition"

func (a *API) definitionRoutes(r *mux.Router) {
	const one = "/v1/rb/definition/{rb-name}/{rb-version}"
	a.on(r, http.MethodPost, "/v1/rb/definition", a.createDefinition)
	a.on(r, http.MethodGet, "/v1/rb/definition", a.listDefinitions)
	a.on(r, http.MethodGet, "/v1/rb/definition/{rb-name}", a.listDefinitions)
	a.on(r, http.MethodGet, one, a.getDefinition)
	a.on(r, http.MethodPut, one, a.updateDefinition)
	a.on(r, http.MethodDelete, one, a.deleteDefinition)
	a.on(r, http.MethodPost, one+"/content", a.uploadDefinition)
}

// emptyBody is the refusal of a request without a body.
func emptyBody() error { return refuse(http.StatusBadRequest, "Empty body") }

func (a *API) createDefinition(w http.ResponseWriter, r *http.Request) error {
	if err := a.writeBundle(r); err != nil {
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
	made, err := a.cfg.Bundles.CreateDefinition(r.Context(), toDefinition(in))
	if err != nil {
		return onlyIf(nf.Exists, err, "Definition already exists", "Creating DB Entry")
	}
	return answer(w, http.StatusCreated, fromDefinition(made))
}

// listDefinitions lists those of a name, or all of them. That there is none at
// all is an error to ONAP, and that there is none of the name is null.
func (a *API) listDefinitions(w http.ResponseWriter, r *http.Request) error {
	if err := a.readBundle(r); err != nil {
		return err
	}
	all, err := a.cfg.Bundles.Definitions(r.Context(), "")
	if err != nil {
		return fail("Listing Resource Bundle Definitions", err)
	}
	if len(all) == 0 {
		return a.none(w, "Listing Resource Bundle Definitions: "+noObjects+"defmetadata")
	}
	name, one := mux.Vars(r)["rb-name"]
	var out []definition
	if a.cfg.Strict {
		out = []definition{}
	}
	for _, d := range all {
		if !one || d.Name == name {
			out = append(out, fromDefinition(d))
		}
	}
	return answer(w, http.StatusOK, out)
}

// none answers when there is nothing to list.
func (a *API) none(w http.ResponseWriter, text string) error {
	if a.cfg.Strict {
		return answer(w, http.StatusOK, []struct{}{})
	}
	return failAs(text, nf.E(nf.NotFound, "list", "what is asked for", nil))
}

func (a *API) getDefinition(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.readBundle(r, name, version); err != nil {
		return err
	}
	d, err := a.cfg.Bundles.Definition(r.Context(), name, version)
	if err != nil {
		return fail(getDefinitionFailed, err)
	}
	return answer(w, http.StatusOK, fromDefinition(d))
}

func bundleOf(r *http.Request) (name, version string) {
	vars := mux.Vars(r)
	return vars["rb-name"], vars["rb-version"]
}

func (a *API) updateDefinition(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.writeBundle(r, name, version); err != nil {
		return err
	}
	in, err := decode[definition](r, emptyBody())
	if err != nil {
		return err
	}
	if err := same(&in.Version, version, "RB version mismatch"); err != nil {
		return err
	}
	if err := same(&in.Name, name, "RB name mismatch"); err != nil {
		return err
	}
	changed, err := a.cfg.Bundles.UpdateDefinition(r.Context(), toDefinition(in))
	if err != nil {
		return onlyIf(nf.NotFound, err, "Definition does not exists", "Updating DB Entry")
	}
	return answer(w, http.StatusCreated, fromDefinition(changed))
}

// same takes a name from the path, with which that of the body must agree.
func same(given *string, path, text string) error {
	if *given != "" && *given != path {
		return refuse(http.StatusBadRequest, text)
	}
	*given = path
	return nil
}

func (a *API) deleteDefinition(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.writeBundle(r, name, version); err != nil {
		return err
	}
	if err := a.cfg.Bundles.RemoveDefinition(r.Context(), name, version); err != nil {
		return fail("Delete Resource Bundle Definition", err)
	}
	return done(w, http.StatusNoContent)
}

func (a *API) uploadDefinition(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.writeBundle(r, name, version); err != nil {
		return err
	}
	archive, err := a.upload(r)
	if err != nil {
		return err
	}
	if err := a.cfg.Bundles.UploadDefinition(r.Context(), name, version, archive); err != nil {
		return uploadFault(err, "Invalid Definition ID provided: "+getDefinitionFailed+": "+noDocuments)
	}
	return done(w, http.StatusOK)
}
