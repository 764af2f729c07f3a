package onap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// configRequest is what a configuration is asked for with.
type configRequest struct {
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
}

// parameters returns the values.
func (q configRequest) parameters() (map[string]any, error) {
	out := map[string]any{}
	if len(q.Values) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(q.Values, &out); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, jsonText("values", q.Values, err))
	}
	return out, nil
}

func (a *API) createConfig(w http.ResponseWriter, r *http.Request) error {
	q, err := decode[configRequest](r, emptyConfig())
	if err != nil {
		return err
	}
	if q.Name == "" {
		return refuse(http.StatusBadRequest, "Missing name in POST request")
	}
	if q.Template == "" {
		return failAs("Incomplete Configuration Provided", nf.E(nf.Invalid, "create", "the configuration", errors.New("template-name is missing")))
	}
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Getting Instance: Get Instance", err)
	}
	if err := a.mayChange(r, v); err != nil {
		return err
	}
	c, err := v.config(q.Name)
	if err != nil {
		return fail("Create Error", err)
	}
	if c.known && !c.Deleted {
		return failAs("Create Error - Config exists", nf.E(nf.Exists, "create", fmt.Sprintf("configuration %q", q.Name), nil))
	}
	if q.Values, err = a.unmaskValues(r, c, q.Values); err != nil {
		return err
	}
	result, err := a.configure(r, c, q)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, result)
}

func (a *API) updateConfig(w http.ResponseWriter, r *http.Request) error {
	q, err := decode[configRequest](r, emptyConfig())
	if err != nil {
		return err
	}
	c, err := a.changeable(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Update Error - Config doesn't exist", c.name)
	}
	if q.Values, err = a.unmaskValues(r, c, q.Values); err != nil {
		return err
	}
	q.Template = cmp.Or(q.Template, c.Template)
	result, err := a.configure(r, c, q)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, result)
}

// configure renders a configuration and lays it over the instance.
func (a *API) configure(r *http.Request, c configured, q configRequest) (configResult, error) {
	parameters, err := q.parameters()
	if err != nil {
		return configResult{}, err
	}
	pkg, err := a.cfg.Bundles.ComposeTemplate(r.Context(), c.bundle(), q.Template)
	if err != nil {
		return configResult{}, fail("Apply Config failed: Getting Template", err)
	}
	next := bundle.Version{
		ConfigKey: c.key(), Number: c.memo.Version + 1, Template: q.Template, Description: q.Description, Package: pkg, Values: q.Values,
	}
	return a.change(r, c, next, c.amendment(pkg, parameters))
}

func (c configured) bundle() bundle.Key {
	return bundle.Key{Name: c.request.Definition, Version: c.request.Version, Profile: c.request.Profile}
}

func (c configured) amendment(pkg string, values map[string]any) *nf.Amendment {
	return amendment(c.name, pkg, values, c.Inputs)
}

// amendment is what a configuration lays over its instance. Its values replace
// whole top-level values of the instance's.
func amendment(name, pkg string, values map[string]any, base nf.Inputs) *nf.Amendment {
	overrides := maps.Clone(base.Overrides)
	maps.DeleteFunc(overrides, func(path, _ string) bool {
		_, replaced := values[topOf(path)]
		return replaced
	})
	return &nf.Amendment{Name: name, Package: pkg, Inputs: nf.Inputs{
		Parameters: values, Overrides: overrides, KubeVersion: base.KubeVersion, ObjectLabels: base.ObjectLabels,
	}}
}

// topOf returns the first key of a path as Helm's --set writes it: a backslash
// makes a dot, or a bracket, part of a key.
func topOf(path string) string {
	var key strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '\\':
			if i++; i < len(path) {
				key.WriteByte(path[i])
			}
		case '.', '[':
			return key.String()
		default:
			key.WriteByte(c)
		}
	}
	return key.String()
}

// change brings the next version of a configuration into force, and then
// remembers it. Without an amendment, what the configuration laid over the
// instance is taken away.
func (a *API) change(r *http.Request, c configured, next bundle.Version, am *nf.Amendment) (configResult, error) {
	ctx := r.Context()
	if err := a.remember(r, c); err != nil {
		return configResult{}, fail("Create Config Version DB Entry", err)
	}
	note, err := json.Marshal(memoOfVersion(next))
	if err != nil {
		return configResult{}, fmt.Errorf("cannot note the configuration: %w", err)
	}
	op, err := a.amend(r, c, func(s *nf.Spec) {
		s.Annotations[configNote+c.name] = string(note)
		s.Amendments = without(s.Amendments, c.name)
		if am != nil {
			s.Amendments = append(s.Amendments, *am)
		}
	})
	if err != nil {
		return configResult{}, err
	}
	next.Created, next.Sensitive = a.cfg.Clock().UTC(), slices.Compact(slices.Sorted(slices.Values(slices.Concat(next.Sensitive, op.Target.Sensitive))))
	if err := a.ledger().Record(ctx, next); err != nil {
		return configResult{}, fail("Create Config Version DB Entry", err)
	}
	return configResult{
		Instance: c.id, Definition: c.request.Definition, Version: c.request.Version, Profile: c.request.Profile,
		Name: c.name, Template: next.Template, Number: next.Number, Description: next.Description, Values: maskValues(next.Values, next.Sensitive),
	}, nil
}

// remember writes down the newest version before a change: the record of the
// instance will know only the next one. A removal that was cut off may have left
// the history of a configuration that does not exist any more.
func (a *API) remember(r *http.Request, c configured) error {
	if !c.known {
		return a.ledger().Forget(r.Context(), c.key())
	}
	now, ok, err := a.recorded(r, c)
	if err != nil || !ok {
		return err
	}
	return a.ledger().Record(r.Context(), now)
}

// amend edits the configuration of an instance, and waits until the region is
// as it says. It is refused when somebody has changed the configuration since it
// was read.
func (a *API) amend(r *http.Request, c configured, edit func(*nf.Spec)) (nf.Operation, error) {
	op, err := a.confirmed(r.Context(), a.options(r, 0), func(ctx context.Context, opts nf.Options) (nf.Operation, error) {
		return a.cfg.Instances.Configure(ctx, c.ID, nf.ConfigureRequest{Options: opts, Edit: func(s *nf.Spec) error {
			if s.Annotations[configNote+c.name] != c.Annotations[configNote+c.name] || s.Annotations[generationNote] != c.Annotations[generationNote] {
				return nf.E(nf.Conflict, "change", fmt.Sprintf("configuration %q", c.name), errors.New("somebody else has changed it meanwhile"))
			}
			s.Annotations, s.Amendments = maps.Clone(s.Annotations), slices.Clone(s.Amendments)
			edit(s)
			return nil
		}})
	})
	if err != nil {
		return op, fail("Apply Config failed", err)
	}
	if op, err = a.await(r.Context(), op, ended); err != nil {
		return op, fail("Apply Config failed", err)
	}
	return op, nil
}

func without(all []nf.Amendment, name string) []nf.Amendment {
	return slices.DeleteFunc(all, func(am nf.Amendment) bool { return am.Name == name })
}

// deleteConfig deletes what a configuration has laid over the instance. The
// configuration stays, with a version that says so.
func (a *API) deleteConfig(w http.ResponseWriter, r *http.Request) error {
	c, err := a.changeable(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Delete Error - Config doesn't exist", c.name)
	}
	newest, err := a.version(r, c, c.memo.Version)
	if err != nil {
		return fail("Delete Config DB Entry", err)
	}
	result, err := a.change(r, c, newest.Deletion(c.memo.Version+1), nil)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, result)
}

// removeConfig forgets a configuration and its history. What it has laid over
// the instance is taken away first, unless only the records are to go.
func (a *API) removeConfig(w http.ResponseWriter, r *http.Request) error {
	c, err := a.changeable(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Delete Config DB Entry", c.name)
	}
	recordsOnly := r.URL.Query().Get("deleteConfigOnly") == "true"
	if _, err := a.amend(r, c, func(s *nf.Spec) {
		delete(s.Annotations, configNote+c.name)
		if !recordsOnly {
			s.Amendments = without(s.Amendments, c.name)
		}
	}); err != nil {
		return err
	}
	if err := a.ledger().Forget(r.Context(), c.key()); err != nil {
		return fail("Delete Config DB Entry", err)
	}
	return done(w, http.StatusAccepted)
}

// rollbackRequest names the version to return to. A number is as good as a text.
type rollbackRequest struct {
	Version number `json:"config-version"`
	Tag     string `json:"config-tag"`
}

// number is a number that may be written as a text.
type number string

// UnmarshalJSON reads either.
func (n *number) UnmarshalJSON(document []byte) error {
	var text string
	if json.Unmarshal(document, &text) == nil {
		*n = number(text)
		return nil
	}
	var value json.Number
	err := json.Unmarshal(document, &value)
	*n = number(value)
	return err
}

// rollBackConfig brings what a former version was into force, as a new one.
func (a *API) rollBackConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := decode[rollbackRequest](r, emptyConfig())
	if err != nil {
		return err
	}
	c, err := a.changeable(r)
	if err != nil {
		return err
	}
	if !c.known {
		return noKey("Rollback Get Current Config Version", c.name)
	}
	to, err := a.target(r, c, body)
	if err != nil {
		return err
	}
	result, err := a.restore(r, c, to)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, result)
}

// target returns the version that a rollback goes to.
func (a *API) target(r *http.Request, c configured, body rollbackRequest) (bundle.Version, error) {
	wrong := func(text string) (bundle.Version, error) {
		return bundle.Version{}, failAs(text, nf.E(nf.Invalid, "roll back", fmt.Sprintf("configuration %q", c.name), errors.New(text)))
	}
	to := 0
	switch {
	case body.Tag != "":
		t, err := a.ledger().Tag(r.Context(), c.key(), body.Tag)
		if nf.KindOf(err) == nf.NotFound {
			return wrong("Rollback Invalid tag: Config DB Entry Not found: Key doesn't exist")
		}
		if err != nil {
			return bundle.Version{}, fail("Rollback Invalid tag", err)
		}
		to = t.Number
	case body.Version != "":
		n, err := strconv.Atoi(string(body.Version))
		if err != nil {
			return wrong("Rollback Invalid Index: it is not a number")
		}
		to = n
	default:
		return wrong("No valid Index for Rollback")
	}
	if to < 1 || to >= c.memo.Version {
		return wrong("Rollback Invalid Config Version")
	}
	v, err := a.ledger().Version(r.Context(), c.key(), to)
	if nf.KindOf(err) == nf.NotFound {
		return wrong("Rollback Get Config Version: it is not kept any more")
	}
	if err != nil {
		return v, fail("Rollback Get Config Version", err)
	}
	return v, nil
}

// restore makes a former version the next one: of the same package, if that is
// still there, and otherwise of what its template is now.
func (a *API) restore(r *http.Request, c configured, to bundle.Version) (configResult, error) {
	if to.Deleted {
		return a.change(r, c, to.Deletion(c.memo.Version+1), nil)
	}
	q := configRequest{Template: to.Template, Description: to.Description, Values: to.Values}
	parameters, err := q.parameters()
	if err != nil {
		return configResult{}, err
	}
	there, err := a.cfg.Bundles.Has(r.Context(), to.Package)
	if err != nil {
		return configResult{}, fail("Apply Config failed", err)
	}
	if !there {
		return a.configure(r, c, q)
	}
	to.Number = c.memo.Version + 1
	return a.change(r, c, to, c.amendment(to.Package, parameters))
}
