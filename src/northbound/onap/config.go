package onap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// config is a version of a configuration.
type config struct {
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
	Version     int             `json:"config-version"`
	Tag         string          `json:"config-tag"`
}

// configResult is the version that a change of a configuration has made. ONAP's
// plugin omits the last three fields, which its Python SDK reads all the same.
type configResult struct {
	Instance    string          `json:"instance-id"`
	Definition  string          `json:"rb-name"`
	Version     string          `json:"rb-version"`
	Profile     string          `json:"profile-name"`
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Number      int             `json:"config-version"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
	Tag         string          `json:"config-tag"` // a new version has none
}

// configTag is a name of a version.
type configTag struct {
	Version int    `json:"config-version"`
	Tag     string `json:"config-tag"`
}

// memo is what an instance's record says of the newest version of a
// configuration. The version of a configuration that was deleted is the deletion.
type memo struct {
	Version     int    `json:"version"`
	Deleted     bool   `json:"deleted,omitempty"` // its objects are gone
	Repeats     int    `json:"repeats,omitempty"` // as in bundle.Version
	Template    string `json:"template"`
	Description string `json:"description,omitempty"`
}

func memoOfVersion(v bundle.Version) memo {
	return memo{Version: v.Number, Deleted: v.Deleted, Repeats: v.Repeats, Template: v.Template, Description: v.Description}
}

func (a *API) configRoutes(r *mux.Router) {
	const all = "/v1/instance/{instance}/config"
	const one = all + "/{config}"
	a.on(r, http.MethodPost, all, a.createConfig)
	a.on(r, http.MethodGet, all, a.listConfigs)
	a.on(r, http.MethodGet, one, a.getConfig)
	a.on(r, http.MethodPut, one, a.updateConfig)
	a.on(r, http.MethodDelete, one, a.removeConfig)
	a.on(r, http.MethodPost, one+"/delete", a.deleteConfig)
	a.on(r, http.MethodPost, one+"/rollback", a.rollBackConfig)
	a.on(r, http.MethodPost, one+"/tagit", a.tagConfig)
	a.on(r, http.MethodGet, one+"/tag", a.listTags)
	a.on(r, http.MethodGet, one+"/tag/{tag}", a.getTagged)
	a.on(r, http.MethodGet, one+"/version", a.listVersions)
	a.on(r, http.MethodGet, one+"/version/{version}", a.getVersion)
}

// memosOf returns what an instance's record says of its configurations, by name.
func memosOf(annotations map[string]string) (map[string]memo, error) {
	out := map[string]memo{}
	for key, note := range annotations {
		name, ok := strings.CutPrefix(key, configNote)
		if !ok {
			continue
		}
		var m memo
		if err := json.Unmarshal([]byte(note), &m); err != nil {
			return nil, fmt.Errorf("cannot read what is noted of configuration %q: %w", name, err)
		}
		out[name] = m
	}
	return out, nil
}

// configured is a configuration of an instance.
type configured struct {
	vnf
	memo

	name  string
	known bool // the instance has such a configuration, whether or not its objects were deleted
}

func (c configured) key() bundle.ConfigKey {
	return bundle.ConfigKey{Instance: c.id, Generation: c.Annotations[generationNote], Config: c.name}
}

// configOf reads the configuration of a path.
func (a *API) configOf(r *http.Request) (configured, error) {
	v, err := a.vnfOf(r)
	if err != nil {
		return configured{}, fail("Getting Instance: Get Instance", err)
	}
	return v.config(mux.Vars(r)["config"])
}

func (v vnf) config(name string) (configured, error) {
	memos, err := memosOf(v.Annotations)
	m, known := memos[name]
	return configured{vnf: v, memo: m, name: name, known: known}, err
}

// changeable reads the configuration of a path for a request that changes it.
func (a *API) changeable(r *http.Request) (configured, error) {
	c, err := a.configOf(r)
	if err == nil {
		err = a.mayChange(r, c.vnf)
	}
	return c, err
}

// noKey is the refusal of a configuration that does not exist, in the words of
// the database that ONAP kept them in.
func noKey(what, name string) error {
	return failAs(what+": Key doesn't exist", nf.E(nf.NotFound, "get", fmt.Sprintf("configuration %q", name), nil))
}

func (a *API) listConfigs(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Getting Instance: Get Instance", err)
	}
	memos, err := memosOf(v.Annotations)
	if err != nil {
		return fail("Get Config DB Entry", err)
	}
	out := []config{}
	for name, m := range memos {
		c, err := a.present(r, configured{vnf: v, memo: m, name: name, known: true})
		if err != nil {
			return err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b config) int { return cmp.Compare(a.Name, b.Name) })
	return answer(w, http.StatusOK, out)
}

func (a *API) getConfig(w http.ResponseWriter, r *http.Request) error {
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Get Config DB Entry", c.name)
	}
	shown, err := a.present(r, c)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown)
}

// present shows the newest version of a configuration.
func (a *API) present(r *http.Request, c configured) (config, error) {
	v, err := a.version(r, c, c.memo.Version)
	if err != nil {
		return config{}, fail("Get Config DB Entry", err)
	}
	tags, err := a.ledger().Tags(r.Context(), c.key())
	if err != nil {
		return config{}, fail("Get Config DB Entry", err)
	}
	return shownVersion(v, tags), nil
}

func (a *API) tagConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := decode[struct {
		Tag string `json:"tag-name"`
	}](r, emptyConfig())
	if err != nil {
		return err
	}
	c, err := a.changeable(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Get Current Config Version", c.name)
	}
	t := bundle.Tag{ConfigKey: c.key(), Name: body.Tag, Number: c.memo.Version}
	if err := a.ledger().SetTag(r.Context(), t); err != nil {
		return fail("TagIt store DB", err)
	}
	return answer(w, http.StatusOK, configTag{t.Number, t.Name})
}

// mayChange asks for the permission to change an instance, for what the engine
// has no part in.
func (a *API) mayChange(r *http.Request, v vnf) error {
	return a.cfg.Access.May(r.Context(), nf.ChangeInstance, nf.Scope{Project: nf.ProjectOf(v.Project), Region: v.Region}, v.ID)
}

func emptyConfig() error { return refuse(http.StatusUnprocessableEntity, "Body empty") }
