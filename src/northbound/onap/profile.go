package onap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// profile is a profile of a definition as clients see it.
type profile struct {
	Definition  string            `json:"rb-name"`
	Version     string            `json:"rb-version"`
	Name        string            `json:"profile-name"`
	Release     string            `json:"release-name"`
	Namespace   string            `json:"namespace"`
	KubeVersion string            `json:"kubernetes-version"`
	Labels      map[string]string `json:"labels"`
	Extra       extraTypes        `json:"extra-resource-types"`
}

// extraTypes are the types of objects that belong to an instance by their label.
type extraTypes []gvk

// UnmarshalJSON also takes the empty object that the python SDK sends for an
// empty list.
func (e *extraTypes) UnmarshalJSON(text []byte) error {
	var none struct{}
	if bytes.HasPrefix(text, []byte("{")) && json.Unmarshal(text, &none) == nil {
		*e = extraTypes{}
		return nil
	}
	return json.Unmarshal(text, (*[]gvk)(e))
}

func fromProfile(p bundle.Profile) profile {
	return profile{
		Definition: p.Definition, Version: p.Version, Name: p.Name, Release: p.Release,
		Namespace: p.Namespace, KubeVersion: p.KubeVersion, Labels: p.Labels,
		Extra: each(p.Extra, func(t bundle.Type) gvk { return gvk(t) }),
	}
}

// each converts the items of a list. No list stays none: it is null in JSON.
func each[T, U any](items []T, convert func(T) U) []U {
	if items == nil {
		return nil
	}
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}

func toProfile(p profile) bundle.Profile {
	return bundle.Profile{
		Definition: p.Definition, Version: p.Version, Name: p.Name, Release: p.Release,
		Namespace: p.Namespace, KubeVersion: p.KubeVersion, Labels: p.Labels,
		Extra: each(p.Extra, func(t gvk) bundle.Type { return bundle.Type(t) }),
	}
}

const getProfileFailed = "Get Resource Bundle Profile"

func (a *API) profileRoutes(r *mux.Router) {
	const all = "/v1/rb/definition/{rb-name}/{rb-version}/profile"
	a.on(r, http.MethodPost, all, a.createProfile)
	a.on(r, http.MethodGet, all, a.listProfiles)
	a.on(r, http.MethodGet, all+"/{profile-name}", a.getProfile)
	a.on(r, http.MethodPut, all+"/{profile-name}", a.updateProfile)
	a.on(r, http.MethodDelete, all+"/{profile-name}", a.deleteProfile)
	a.on(r, http.MethodPost, all+"/{profile-name}/content", a.uploadProfile)
}

// createProfile makes a profile of the definition that the body names. That of
// the path is for a body that names none.
func (a *API) createProfile(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.writeBundle(r, name, version); err != nil {
		return err
	}
	in, err := decode[profile](r, emptyBody())
	if err != nil {
		return err
	}
	if in.Name == "" {
		return refuse(http.StatusBadRequest, "Missing name in POST request")
	}
	in.Definition, in.Version = cmp.Or(in.Definition, name), cmp.Or(in.Version, version)
	made, err := a.cfg.Bundles.CreateProfile(r.Context(), toProfile(in))
	switch nf.KindOf(err) {
	case nf.Exists:
		return failAs("Profile already exists for this Definition", err)
	case nf.NotFound:
		return failAs("Invalid Resource Bundle ID provided: "+getDefinitionFailed+": "+noDocuments, err)
	default:
	}
	if err != nil {
		return fail("Creating Profile DB Entry", err)
	}
	return answer(w, http.StatusCreated, fromProfile(made))
}

func (a *API) listProfiles(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	if err := a.readBundle(r, name, version); err != nil {
		return err
	}
	all, err := a.cfg.Bundles.Profiles(r.Context(), name, version)
	if err != nil {
		return fail("Listing Resource Bundle Profiles", err)
	}
	if len(all) == 0 {
		return a.none(w, "No Profiles Found for this Definition")
	}
	out := make([]profile, len(all))
	for i, p := range all {
		out[i] = fromProfile(p)
	}
	return answer(w, http.StatusOK, out)
}

func profileOf(r *http.Request) bundle.Key {
	name, version := bundleOf(r)
	return bundle.Key{Name: name, Version: version, Profile: mux.Vars(r)["profile-name"]}
}

// missingProfile tells what is wrong with a profile. That it is missing is the
// one 404 of ONAP's resource bundles.
func missingProfile(err error) error {
	if nf.KindOf(err) != nf.NotFound {
		return fail(getProfileFailed, err)
	}
	return &refusal{status: http.StatusNotFound, strict: http.StatusNotFound, text: getProfileFailed + ": " + noDocuments, cause: err}
}

func (a *API) getProfile(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	if err := a.readBundle(r, key.Name, key.Version, key.Profile); err != nil {
		return err
	}
	p, err := a.cfg.Bundles.Profile(r.Context(), key)
	if err != nil {
		return missingProfile(err)
	}
	return answer(w, http.StatusOK, fromProfile(p))
}

func (a *API) updateProfile(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Profile); err != nil {
		return err
	}
	in, err := decode[profile](r, emptyBody())
	if err != nil {
		return err
	}
	if err := same(&in.Name, key.Profile, "Profile name mismatch"); err != nil {
		return err
	}
	if err := same(&in.Version, key.Version, "RB version mismatch"); err != nil {
		return err
	}
	if err := same(&in.Definition, key.Name, "RB name mismatch"); err != nil {
		return err
	}
	changed, err := a.cfg.Bundles.UpdateProfile(r.Context(), toProfile(in))
	if err != nil {
		return missingProfile(err)
	}
	return answer(w, http.StatusOK, fromProfile(changed))
}

func (a *API) deleteProfile(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Profile); err != nil {
		return err
	}
	if err := a.cfg.Bundles.RemoveProfile(r.Context(), key); err != nil {
		return fail("Delete Profile entry", err)
	}
	return done(w, http.StatusNoContent)
}

func (a *API) uploadProfile(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	if err := a.writeBundle(r, key.Name, key.Version, key.Profile); err != nil {
		return err
	}
	archive, err := a.upload(r)
	if err != nil {
		return err
	}
	if err := a.cfg.Bundles.UploadProfile(r.Context(), key, archive); err != nil {
		return uploadFault(err, "Invalid Profile Name provided: "+getProfileFailed+": "+noDocuments)
	}
	return done(w, http.StatusOK)
}
