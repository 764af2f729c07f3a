package onap

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// template is a configuration template as clients see it. The last two fields
// are not the client's to set, but it gets back what it sent.
type template struct {
	Name        string `json:"template-name"`
	Description string `json:"description"`
	Chart       string `json:"chart-name"`
	HasContent  bool   `json:"has-content"`
}

// templateItem is a template in a list.
type templateItem struct {
	Name        string `json:"template-name"`
	Description string `json:"description"`
}

const getTemplateFailed = "Get ConfigTemplate"

func (a *API) templateRoutes(r *mux.Router) {
	const all = "/v1/rb/definition/{rb-name}/{rb-version}/config-template"
	a.on(r, http.MethodPost, all, a.createTemplate)
	a.on(r, http.MethodGet, all, a.listTemplates)
	a.on(r, http.MethodGet, all+"/{template-name}", a.getTemplate)
	a.on(r, http.MethodPut, all+"/{template-name}", a.updateTemplate)
	a.on(r, http.MethodDelete, all+"/{template-name}", a.deleteTemplate)
	a.on(r, http.MethodPost, all+"/{template-name}/content", a.uploadTemplate)
}

func templateOf(r *http.Request) bundle.TemplateKey {
	name, version := bundleOf(r)
	return bundle.TemplateKey{Name: name, Version: version, Template: mux.Vars(r)["template-name"]}
}

func (a *API) createTemplate(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.writeBundle(r, name, version); err != nil {
		return err
	}
	in, err := decode[template](r, emptyBody())
	if err != nil {
		return err
	}
	if in.Name == "" {
		return refuse(http.StatusBadRequest, "Missing name in POST request")
	}
	_, err = a.cfg.Bundles.CreateTemplate(r.Context(), bundle.Template{Definition: name, Version: version, Name: in.Name, Description: in.Description})
	switch nf.KindOf(err) {
	case nf.Exists:
		return failAs("Config Template already exists", err)
	case nf.NotFound:
		return failAs("Invalid Resource Bundle ID provided: "+getDefinitionFailed+": "+noDocuments, err)
	default:
	}
	if err != nil {
		return fail("Creating ConfigTemplate DB Entry", err)
	}
	return answer(w, http.StatusCreated, in)
}

// listTemplates lists those of the definition; ONAP mixes those of all
// definitions.
func (a *API) listTemplates(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.readBundle(r, name, version); err != nil {
		return err
	}
	all, err := a.cfg.Bundles.Templates(r.Context(), name, version)
	if err != nil {
		return fail("Listing ConfigTemplates", err)
	}
	if len(all) == 0 {
		return a.none(w, "No Config Templates Found")
	}
	out := make([]templateItem, len(all))
	for i, t := range all {
		out[i] = templateItem{Name: t.Name, Description: t.Description}
	}
	return answer(w, http.StatusOK, out)
}

func (a *API) getTemplate(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	if err := a.readBundle(r, key.Name, key.Version, key.Template); err != nil {
		return err
	}
	t, err := a.cfg.Bundles.Template(r.Context(), key)
	if err != nil {
		return fail(getTemplateFailed, err)
	}
	return answer(w, http.StatusOK, template{
		Name: t.Name, Description: t.Description, Chart: t.Chart, HasContent: t.Content != bundle.Content{},
	})
}

func (a *API) updateTemplate(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Template); err != nil {
		return err
	}
	in, err := decode[template](r, emptyBody())
	switch {
	case err != nil:
		return err
	case in.Name == "":
		return refuse(http.StatusBadRequest, "Missing name in PUT request")
	case in.Name != key.Template:
		return refuse(http.StatusBadRequest, "Template name mismatch")
	}
	_, err = a.cfg.Bundles.UpdateTemplate(r.Context(), bundle.Template{
		Definition: key.Name, Version: key.Version, Name: key.Template, Description: in.Description,
	})
	if err != nil {
		return fail(getTemplateFailed, err)
	}
	return answer(w, http.StatusCreated, in)
}

func (a *API) deleteTemplate(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Template); err != nil {
		return err
	}
	if err := a.cfg.Bundles.RemoveTemplate(r.Context(), key); err != nil {
		return fail("Delete ConfigTemplate", err)
	}
	return done(w, http.StatusNoContent)
}

func (a *API) uploadTemplate(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Template); err != nil {
		return err
	}
	archive, err := a.upload(r)
	if err != nil {
		return err
	}
	if err := a.cfg.Bundles.UploadTemplate(r.Context(), key, archive); err != nil {
		return uploadFault(err, "Invalid Template Name provided: "+getTemplateFailed+": "+noDocuments)
	}
	return done(w, http.StatusOK)
}
