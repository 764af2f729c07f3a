package onap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// configResult is what a change of a configuration has come to.
type configResult struct {
	Instance   string `json:"instance-id"`
	Definition string `json:"rb-name"`
	Version    string `json:"rb-version"`
	Profile    string `json:"profile-name"`
	Name       string `json:"config-name"`
	Template   string `json:"template-name"`
	Number     int    `json:"config-version"`
}

// configTag is a name of a version.
type configTag struct {
	Version int    `json:"config-version"`
	Tag     string `json:"config-tag"`
}

// memo is what an instance's record says of a configuration that is in force.
type memo struct {
	Version     int    `json:"version"`
	Deleted     bool   `json:"deleted,omitempty"` // its objects are gone, its history is not
	Template    string `json:"template"`
	Description string `json:"description,omitempty"`
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
	known bool // the instance has, or had, such a configuration
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
		if m.Deleted {
			continue
		}
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
	if !c.known || c.Deleted {
		return noKey("Get Config DB Entry", c.name)
	}
	shown, err := a.present(r, c)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown)
}

// present shows a configuration as it is in force.
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

// version returns a version of a configuration. The history is written after the
// change: of the last one, it may be that only the instance's record knows.
func (a *API) version(r *http.Request, c configured, number int) (bundle.Version, error) {
	v, err := a.ledger().Version(r.Context(), c.key(), number)
	if nf.KindOf(err) != nf.NotFound || number != c.memo.Version {
		return v, err
	}
	recorded, ok, e := c.recorded()
	if e != nil || !ok {
		return v, cmp.Or(e, err)
	}
	return recorded, nil
}

// recorded returns the version that is in force by what the instance's record
// says of it; false when none is.
func (c configured) recorded() (bundle.Version, bool, error) {
	i := slices.IndexFunc(c.Amendments, func(am nf.Amendment) bool { return am.Name == c.name })
	if !c.known || c.Deleted || i < 0 {
		return bundle.Version{}, false, nil
	}
	values, err := json.Marshal(c.Amendments[i].Inputs.Parameters)
	if err != nil {
		return bundle.Version{}, false, fmt.Errorf("cannot read the values of configuration %q: %w", c.name, err)
	}
	return bundle.Version{
		ConfigKey: c.key(), Number: c.memo.Version, Template: c.Template, Description: c.memo.Description,
		Package: c.Amendments[i].Package, Values: values, Sensitive: c.Sensitive,
	}, true, nil
}

func shownVersion(v bundle.Version, tags []bundle.Tag) config {
	out := config{Name: v.Config, Template: v.Template, Description: v.Description, Values: maskValues(v.Values, v.Sensitive), Version: v.Number}
	for _, t := range tags {
		if t.Number == v.Number {
			out.Tag = t.Name
		}
	}
	return out
}

func (a *API) listVersions(w http.ResponseWriter, r *http.Request) error {
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	all, err := a.ledger().Versions(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Versions", err)
	}
	last, ok, err := c.recorded()
	if err != nil {
		return fail("Get Config Versions", err)
	}
	if ok && !slices.ContainsFunc(all, func(v bundle.Version) bool { return v.Number == last.Number }) {
		all = append(all, last)
	}
	tags, err := a.ledger().Tags(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Versions", err)
	}
	out := []config{}
	for _, v := range all {
		out = append(out, shownVersion(v, tags))
	}
	return answer(w, http.StatusOK, out)
}

func (a *API) getVersion(w http.ResponseWriter, r *http.Request) error {
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(mux.Vars(r)["version"])
	if err != nil || number < 1 {
		return failAs("Get Config Version: Invalid version", nf.E(nf.Invalid, "get", "the version", strconv.ErrSyntax))
	}
	return a.answerVersion(w, r, c, number)
}

func (a *API) answerVersion(w http.ResponseWriter, r *http.Request, c configured, number int) error {
	if !c.known {
		return noKey("Get Config Version", c.name)
	}
	v, err := a.version(r, c, number)
	if nf.KindOf(err) == nf.NotFound {
		return noKey("Get Config Version", c.name)
	}
	if err != nil {
		return fail("Get Config Version", err)
	}
	tags, err := a.ledger().Tags(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Version", err)
	}
	return answer(w, http.StatusOK, shownVersion(v, tags))
}

func (a *API) listTags(w http.ResponseWriter, r *http.Request) error {
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	tags, err := a.ledger().Tags(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Tags", err)
	}
	slices.SortFunc(tags, func(a, b bundle.Tag) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	out := []configTag{}
	for _, t := range tags {
		out = append(out, configTag{t.Number, t.Name})
	}
	return answer(w, http.StatusOK, out)
}

func (a *API) getTagged(w http.ResponseWriter, r *http.Request) error {
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	t, err := a.ledger().Tag(r.Context(), c.key(), mux.Vars(r)["tag"])
	if nf.KindOf(err) == nf.NotFound {
		return noKey("Config DB Entry Not found", c.name)
	}
	if err != nil {
		return fail("Get Config Tag", err)
	}
	return a.answerVersion(w, r, c, t.Number)
}

func (a *API) tagConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := decode[struct {
		Tag string `json:"tag-name"`
	}](r, emptyConfig())
	if err != nil {
		return err
	}
	c, err := a.configOf(r)
	if err != nil {
		return err
	}
	if err := a.mayChange(r, c.vnf); err != nil {
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

func emptyConfig() error { return refuse(http.StatusUnprocessableEntity, "EOF") }
