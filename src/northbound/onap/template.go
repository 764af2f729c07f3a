package onap

import (
	"context"
	"io"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// template is a configuration template, as clients see it. Clients cannot set
// the last two fields, but a response repeats the values that the client sent.
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

// templates serves the configuration templates of definitions.
type templates struct {
	bundles  Bundles
	archives archives
	strict   bool
}

func (ts templates) routes(on route) {
	const all = "/v1/rb/definition/{rb-name}/{rb-version}/config-template"
	on(http.MethodPost, all, ts.create)
	on(http.MethodGet, all, ts.list)
	on(http.MethodGet, all+"/{template-name}", ts.get)
	on(http.MethodPut, all+"/{template-name}", ts.update)
	on(http.MethodDelete, all+"/{template-name}", ts.remove)
	on(http.MethodPost, all+"/{template-name}/content", ts.upload)
}

func templateOf(r *http.Request) bundle.TemplateKey {
	name, version := bundleOf(r)
	return bundle.TemplateKey{Name: name, Version: version, Template: mux.Vars(r)["template-name"]}
}

func (ts templates) create(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ts.bundles.Write(r.Context(), name, version)
	if err != nil {
		return err
	}
	in, err := decode[template](r, emptyBody())
	if err != nil {
		return err
	}
	if in.Name == "" {
		return refuse(http.StatusBadRequest, "Missing name in POST request")
	}
	_, err = bundles.CreateTemplate(r.Context(), bundle.Template{Definition: name, Version: version, Name: in.Name, Description: in.Description})
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

// listTemplates lists the templates of one definition. ONAP's plugin lists
// those of all definitions.
func (ts templates) list(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ts.bundles.Read(r.Context(), name, version)
	if err != nil {
		return err
	}
	all, err := bundles.Templates(r.Context(), name, version)
	if err != nil {
		return fail("Listing ConfigTemplates", err)
	}
	if len(all) == 0 {
		return none(w, ts.strict, "No Config Templates Found")
	}
	out := make([]templateItem, len(all))
	for i, t := range all {
		out[i] = templateItem{Name: t.Name, Description: t.Description}
	}
	return answer(w, http.StatusOK, out)
}

func (ts templates) get(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	bundles, err := ts.bundles.Read(r.Context(), key.Name, key.Version, key.Template)
	if err != nil {
		return err
	}
	t, err := bundles.Template(r.Context(), key)
	if err != nil {
		return fail(getTemplateFailed, err)
	}
	return answer(w, http.StatusOK, template{
		Name: t.Name, Description: t.Description, Chart: t.Chart, HasContent: t.Content != bundle.Content{},
	})
}

func (ts templates) update(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	bundles, err := ts.bundles.Write(r.Context(), key.Name, key.Version, key.Template)
	if err != nil {
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
	_, err = bundles.UpdateTemplate(r.Context(), bundle.Template{
		Definition: key.Name, Version: key.Version, Name: key.Template, Description: in.Description,
	})
	if err != nil {
		return fail(getTemplateFailed, err)
	}
	return answer(w, http.StatusCreated, in)
}

func (ts templates) remove(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	bundles, err := ts.bundles.Write(r.Context(), key.Name, key.Version, key.Template)
	if err != nil {
		return err
	}
	if err := bundles.RemoveTemplate(r.Context(), key); err != nil {
		return fail("Delete ConfigTemplate", err)
	}
	return done(w, http.StatusNoContent)
}

func (ts templates) upload(w http.ResponseWriter, r *http.Request) error {
	key := templateOf(r)
	bundles, err := ts.bundles.Write(r.Context(), key.Name, key.Version, key.Template)
	if err != nil {
		return err
	}
	return ts.archives.put(w, r, "Invalid Template Name provided: "+getTemplateFailed+": "+noDocuments, func(ctx context.Context, archive io.Reader) error {
		return bundles.UploadTemplate(ctx, key, archive)
	})
}
