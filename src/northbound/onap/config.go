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

// config is a version of a configuration, as clients see it.
type config struct {
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
	Version     int             `json:"config-version"`
	Tag         string          `json:"config-tag"`
}

// configResult is the version that a change of a configuration created. ONAP's
// plugin omits the last three fields, but its Python SDK reads them.
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
	Tag         string          `json:"config-tag"` // always empty for a new version
}

// configTag is a tag of a version.
type configTag struct {
	Version int    `json:"config-version"`
	Tag     string `json:"config-tag"`
}

// storedConfig is the newest version of a configuration, as stored in an
// instance's annotations. For a deleted configuration it is the deletion.
type storedConfig struct {
	Version     int    `json:"version"`
	Deleted     bool   `json:"deleted,omitempty"`  // its objects were deleted
	Repeats     int    `json:"retry_of,omitempty"` // as in bundle.Version
	Template    string `json:"template"`
	Description string `json:"description,omitempty"`
}

func storedConfigOf(v bundle.Version) storedConfig {
	return storedConfig{Version: v.Number, Deleted: v.Deleted, Repeats: v.Repeats, Template: v.Template, Description: v.Description}
}

// configs serves the configurations of instances.
type configs struct {
	vnfs    *vnfs
	records Records
	changes configChanges
}

func (cs configs) routes(on route) {
	const all = "/v1/instance/{instance}/config"
	const one = all + "/{config}"
	on(http.MethodPost, all, cs.create)
	on(http.MethodGet, all, cs.list)
	on(http.MethodGet, one, cs.get)
	on(http.MethodPut, one, cs.update)
	on(http.MethodDelete, one, cs.remove)
	on(http.MethodPost, one+"/delete", cs.deleteObjects)
	on(http.MethodPost, one+"/rollback", cs.rollBack)
	on(http.MethodPost, one+"/tagit", cs.tag)
	on(http.MethodGet, one+"/tag", cs.listTags)
	on(http.MethodGet, one+"/tag/{tag}", cs.getTagged)
	on(http.MethodGet, one+"/version", cs.listVersions)
	on(http.MethodGet, one+"/version/{version}", cs.getVersion)
}

// storedConfigs returns the configurations that are stored in an instance's
// annotations, by name.
func storedConfigs(annotations map[string]string) (map[string]storedConfig, error) {
	out := map[string]storedConfig{}
	for key, annotation := range annotations {
		name, ok := strings.CutPrefix(key, configAnnotation)
		if !ok {
			continue
		}
		var sc storedConfig
		if err := json.Unmarshal([]byte(annotation), &sc); err != nil {
			return nil, fmt.Errorf("cannot read the record of configuration %q: %w", name, err)
		}
		out[name] = sc
	}
	return out, nil
}

// configured is a configuration of an instance.
type configured struct {
	vnf    vnf
	past   HistoryReader
	stored storedConfig
	name   string
	known  bool // the instance has such a configuration, whether or not its objects were deleted
}

func (c configured) key() bundle.ConfigKey {
	return bundle.ConfigKey{Instance: c.vnf.id, Generation: c.vnf.Annotations[generationAnnotation], Config: c.name}
}

// of returns the configuration of a request's path.
func (cs configs) of(r *http.Request) (configured, error) {
	v, err := cs.vnfs.of(r)
	if err != nil {
		return configured{}, fail("Getting Instance: Get Instance", err)
	}
	past, err := cs.records.Read(r.Context(), v.Instance)
	if err != nil {
		return configured{}, fail("Getting Instance: Get Instance", err)
	}
	return v.config(past, mux.Vars(r)["config"])
}

func (v vnf) config(past HistoryReader, name string) (configured, error) {
	stored, err := storedConfigs(v.Annotations)
	sc, known := stored[name]
	return configured{vnf: v, past: past, stored: sc, name: name, known: known}, err
}

// changeable returns the configuration of a request's path and its history, if
// the caller may change it. Unknown begins the text of the error if it does not
// exist.
func (cs configs) changeable(r *http.Request, unknown string) (configured, HistoryWriter, error) {
	c, err := cs.of(r)
	if err != nil {
		return c, nil, err
	}
	history, err := cs.records.Change(r.Context(), c.vnf.Instance)
	if err == nil && !c.known {
		err = noKey(unknown, c.name)
	}
	return c, history, err
}

// noKey returns the error for a configuration that does not exist. Its text is
// that of ONAP's database.
func noKey(what, name string) error {
	return failAs(what+": Key doesn't exist", nf.E(nf.NotFound, "get", fmt.Sprintf("configuration %q", name), nil))
}

func (cs configs) list(w http.ResponseWriter, r *http.Request) error {
	v, err := cs.vnfs.of(r)
	if err != nil {
		return fail("Getting Instance: Get Instance", err)
	}
	past, err := cs.records.Read(r.Context(), v.Instance)
	if err != nil {
		return fail("Get Config DB Entry", err)
	}
	stored, err := storedConfigs(v.Annotations)
	if err != nil {
		return fail("Get Config DB Entry", err)
	}
	out := []config{}
	for name, sc := range stored {
		c, err := configured{vnf: v, past: past, stored: sc, name: name, known: true}.newest(r)
		if err != nil {
			return err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b config) int { return cmp.Compare(a.Name, b.Name) })
	return answer(w, http.StatusOK, out)
}

func (cs configs) get(w http.ResponseWriter, r *http.Request) error {
	c, err := cs.of(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Get Config DB Entry", c.name)
	}
	shown, err := c.newest(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown)
}

func (cs configs) tag(w http.ResponseWriter, r *http.Request) error {
	body, err := decode[struct {
		Tag string `json:"tag-name"`
	}](r, emptyConfig())
	if err != nil {
		return err
	}
	c, history, err := cs.changeable(r, "Get Current Config Version")
	if err != nil {
		return err
	}
	t := bundle.Tag{ConfigKey: c.key(), Name: body.Tag, Number: c.stored.Version}
	if err := history.SetTag(r.Context(), t); err != nil {
		return fail("TagIt store DB", err)
	}
	return answer(w, http.StatusOK, configTag{t.Number, t.Name})
}

func emptyConfig() error { return refuse(http.StatusUnprocessableEntity, "Body empty") }
