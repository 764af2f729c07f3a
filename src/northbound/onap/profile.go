package onap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// profile is a profile of a definition, as clients see it.
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

// extraTypes are additional kinds of objects that belong to an instance by
// their label.
type extraTypes []gvk

// UnmarshalJSON also accepts the empty object that ONAP's Python SDK sends for
// an empty list.
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

// each converts the items of a list. Nil stays nil, which is null in JSON.
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

// profiles serves the profiles of definitions.
type profiles struct {
	bundles  Bundles
	archives archives
	strict   bool
}

func (ps profiles) routes(on route) {
	const all = "/v1/rb/definition/{rb-name}/{rb-version}/profile"
	on(http.MethodPost, all, ps.create)
	on(http.MethodGet, all, ps.list)
	on(http.MethodGet, all+"/{profile-name}", ps.get)
	on(http.MethodPut, all+"/{profile-name}", ps.update)
	on(http.MethodDelete, all+"/{profile-name}", ps.remove)
	on(http.MethodPost, all+"/{profile-name}/content", ps.upload)
}

// createProfile creates a profile of the definition that the body names, or
// else of the one in the path.
func (ps profiles) create(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ps.bundles.Write(r.Context(), name, version)
	if err != nil {
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
	made, err := bundles.CreateProfile(r.Context(), toProfile(in))
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

func (ps profiles) list(w http.ResponseWriter, r *http.Request) error {
	name, version := bundleOf(r)
	bundles, err := ps.bundles.Read(r.Context(), name, version)
	if err != nil {
		return err
	}
	all, err := bundles.Profiles(r.Context(), name, version)
	if err != nil {
		return fail("Listing Resource Bundle Profiles", err)
	}
	if len(all) == 0 {
		return none(w, ps.strict, "No Profiles Found for this Definition")
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

// missingProfile returns the error for a failed access to a profile. A missing
// profile is the only 404 of ONAP's resource bundles.
func missingProfile(err error) error {
	if nf.KindOf(err) != nf.NotFound {
		return fail(getProfileFailed, err)
	}
	return &refusal{status: http.StatusNotFound, strict: http.StatusNotFound, text: getProfileFailed + ": " + noDocuments, cause: err}
}

func (ps profiles) get(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	bundles, err := ps.bundles.Read(r.Context(), key.Name, key.Version, key.Profile)
	if err != nil {
		return err
	}
	p, err := bundles.Profile(r.Context(), key)
	if err != nil {
		return missingProfile(err)
	}
	return answer(w, http.StatusOK, fromProfile(p))
}

func (ps profiles) update(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	bundles, err := ps.bundles.Write(r.Context(), key.Name, key.Version, key.Profile)
	if err != nil {
		return err
	}
	in, err := decode[profile](r, emptyBody())
	if err != nil {
		return err
	}
	if err := matchPath(&in.Name, key.Profile, "Profile name mismatch"); err != nil {
		return err
	}
	if err := matchPath(&in.Version, key.Version, "RB version mismatch"); err != nil {
		return err
	}
	if err := matchPath(&in.Definition, key.Name, "RB name mismatch"); err != nil {
		return err
	}
	changed, err := bundles.UpdateProfile(r.Context(), toProfile(in))
	if err != nil {
		return missingProfile(err)
	}
	return answer(w, http.StatusOK, fromProfile(changed))
}

func (ps profiles) remove(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	bundles, err := ps.bundles.Write(r.Context(), key.Name, key.Version, key.Profile)
	if err != nil {
		return err
	}
	if err := bundles.RemoveProfile(r.Context(), key); err != nil {
		return fail("Delete Profile entry", err)
	}
	return done(w, http.StatusNoContent)
}

func (ps profiles) upload(w http.ResponseWriter, r *http.Request) error {
	key := profileOf(r)
	bundles, err := ps.bundles.Write(r.Context(), key.Name, key.Version, key.Profile)
	if err != nil {
		return err
	}
	return ps.archives.put(w, r, "Invalid Profile Name provided: "+getProfileFailed+": "+noDocuments, func(ctx context.Context, archive io.Reader) error {
		return bundles.UploadProfile(ctx, key, archive)
	})
}
