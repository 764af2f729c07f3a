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
	"time"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// configChanges changes the configurations of instances.
type configChanges struct {
	bundles Bundles
	engine  Changes
	runner  *runner
	clock   func() time.Time
}

// configRequest is a request to create or update a configuration.
type configRequest struct {
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
}

// parameters decodes the values.
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

func (cs configs) create(w http.ResponseWriter, r *http.Request) error {
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
	v, err := cs.vnfs.of(r)
	if err != nil {
		return fail("Getting Instance: Get Instance", err)
	}
	history, err := cs.records.Change(r.Context(), v.Instance)
	if err != nil {
		return err
	}
	c, err := v.config(history, q.Name)
	if err != nil {
		return fail("Create Error", err)
	}
	if c.known && !c.stored.Deleted {
		return failAs("Create Error - Config exists", nf.E(nf.Exists, "create", fmt.Sprintf("configuration %q", q.Name), nil))
	}
	if q.Values, err = c.unmask(r, q.Values); err != nil {
		return err
	}
	result, err := cs.changes.configure(r, history, c, q)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, result)
}

func (cs configs) update(w http.ResponseWriter, r *http.Request) error {
	q, err := decode[configRequest](r, emptyConfig())
	if err != nil {
		return err
	}
	c, history, err := cs.changeable(r, "Update Error - Config doesn't exist")
	if err != nil {
		return err
	}
	if q.Values, err = c.unmask(r, q.Values); err != nil {
		return err
	}
	q.Template = cmp.Or(q.Template, c.stored.Template)
	result, err := cs.changes.configure(r, history, c, q)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, result)
}

// configure renders a configuration and applies it to the instance.
func (cs configChanges) configure(r *http.Request, history HistoryWriter, c configured, q configRequest) (configResult, error) {
	parameters, err := q.parameters()
	if err != nil {
		return configResult{}, err
	}
	bundles, err := cs.bundles.ForChange(r.Context(), c.vnf.Instance)
	if err != nil {
		return configResult{}, fail("Apply Config failed", err)
	}
	pkg, err := bundles.ComposeTemplate(r.Context(), c.bundle(), q.Template)
	if err != nil {
		return configResult{}, fail("Apply Config failed: Getting Template", err)
	}
	next := bundle.Version{
		ConfigKey: c.key(), Number: c.stored.Version + 1, Template: q.Template, Description: q.Description, Package: pkg, Values: q.Values,
	}
	return cs.change(r, history, c, next, c.amendment(pkg, parameters))
}

func (c configured) bundle() bundle.Key {
	return bundle.Key{Name: c.vnf.request.Definition, Version: c.vnf.request.Version, Profile: c.vnf.request.Profile}
}

func (c configured) amendment(pkg string, values map[string]any) *nf.Amendment {
	return amendment(c.name, pkg, values, c.vnf.Inputs)
}

// amendment returns the amendment for a configuration. Its values replace whole
// top-level values of the instance.
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

// topOf returns the first key of a path in the syntax of Helm's --set: after a
// backslash, a dot or a bracket is part of the key.
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

// change applies the next version of a configuration and then records it.
// Without an amendment, it deletes the objects of the configuration.
func (cs configChanges) change(r *http.Request, history HistoryWriter, c configured, next bundle.Version, am *nf.Amendment) (configResult, error) {
	ctx := r.Context()
	if err := c.remember(r, history); err != nil {
		return configResult{}, fail("Create Config Version DB Entry", err)
	}
	annotation, err := json.Marshal(storedConfigOf(next))
	if err != nil {
		return configResult{}, fmt.Errorf("cannot store the configuration: %w", err)
	}
	op, err := cs.amend(r, c, func(s *nf.Spec) {
		s.Annotations[configAnnotation+c.name] = string(annotation)
		s.Amendments = without(s.Amendments, c.name)
		if am != nil {
			s.Amendments = append(s.Amendments, *am)
		}
	})
	if err != nil {
		return configResult{}, err
	}
	next.Created, next.Sensitive = cs.clock().UTC(), slices.Compact(slices.Sorted(slices.Values(slices.Concat(next.Sensitive, op.Instance.Target.Sensitive))))
	if err := history.Record(ctx, next); err != nil {
		return configResult{}, fail("Create Config Version DB Entry", err)
	}
	return configResult{
		Instance: c.vnf.id, Definition: c.vnf.request.Definition, Version: c.vnf.request.Version, Profile: c.vnf.request.Profile,
		Name: c.name, Template: next.Template, Number: next.Number, Description: next.Description, Values: maskValues(next.Values, next.Sensitive),
	}, nil
}

// amend edits the configuration of an instance and waits until the operation
// has ended. It returns nf.Conflict if the configuration has changed since it
// was read.
func (cs configChanges) amend(r *http.Request, c configured, edit func(*nf.Spec)) (nf.Operation, error) {
	op, err := cs.runner.confirmed(r.Context(), cs.runner.options(r, 0), func(ctx context.Context, opts nf.Options) (nf.Operation, error) {
		return cs.engine.Configure(ctx, c.vnf.ID, nf.ConfigureRequest{Options: opts, Edit: func(s *nf.Spec) error {
			if s.Annotations[configAnnotation+c.name] != c.vnf.Annotations[configAnnotation+c.name] || s.Annotations[generationAnnotation] != c.vnf.Annotations[generationAnnotation] {
				return nf.E(nf.Conflict, "change", fmt.Sprintf("configuration %q", c.name), errors.New("another request has changed it in the meantime"))
			}
			s.Annotations, s.Amendments = maps.Clone(s.Annotations), slices.Clone(s.Amendments)
			edit(s)
			return nil
		}})
	})
	if err != nil {
		return op, fail("Apply Config failed", err)
	}
	if op, err = cs.runner.await(r.Context(), op, northbound.Ended); err != nil {
		return op, fail("Apply Config failed", err)
	}
	return op, nil
}

func without(all []nf.Amendment, name string) []nf.Amendment {
	return slices.DeleteFunc(all, func(am nf.Amendment) bool { return am.Name == name })
}

// deleteObjects deletes the objects of a configuration. The configuration
// remains, with a new version that records the deletion.
func (cs configs) deleteObjects(w http.ResponseWriter, r *http.Request) error {
	c, history, err := cs.changeable(r, "Delete Error - Config doesn't exist")
	if err != nil {
		return err
	}
	newest, err := c.version(r, c.stored.Version)
	if err != nil {
		return fail("Delete Config DB Entry", err)
	}
	result, err := cs.changes.change(r, history, c, newest.Deletion(c.stored.Version+1), nil)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, result)
}

// remove deletes a configuration and its history. It deletes the
// configuration's objects first, unless deleteConfigOnly is true.
func (cs configs) remove(w http.ResponseWriter, r *http.Request) error {
	c, history, err := cs.changeable(r, "Delete Config DB Entry")
	if err != nil {
		return err
	}
	recordsOnly := r.URL.Query().Get("deleteConfigOnly") == "true"
	if _, err := cs.changes.amend(r, c, func(s *nf.Spec) {
		delete(s.Annotations, configAnnotation+c.name)
		if !recordsOnly {
			s.Amendments = without(s.Amendments, c.name)
		}
	}); err != nil {
		return err
	}
	if err := history.DeleteConfig(r.Context(), c.key()); err != nil {
		return fail("Delete Config DB Entry", err)
	}
	return done(w, http.StatusAccepted)
}

// rollbackRequest names the target version, as a number or a string, or its
// tag.
type rollbackRequest struct {
	Version number `json:"config-version"`
	Tag     string `json:"config-tag"`
}

// number is a number that JSON may hold as a string.
type number string

// UnmarshalJSON accepts a number or a string.
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

// rollBack applies an earlier version as a new version.
func (cs configs) rollBack(w http.ResponseWriter, r *http.Request) error {
	body, err := decode[rollbackRequest](r, emptyConfig())
	if err != nil {
		return err
	}
	c, history, err := cs.changeable(r, "Rollback Get Current Config Version")
	if err != nil {
		return err
	}
	to, err := cs.target(r, c, body)
	if err != nil {
		return err
	}
	result, err := cs.changes.restore(r, history, c, to)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, result)
}

// target returns the target version of a rollback.
func (cs configs) target(r *http.Request, c configured, body rollbackRequest) (bundle.Version, error) {
	wrong := func(text string) (bundle.Version, error) {
		return bundle.Version{}, failAs(text, nf.E(nf.Invalid, "roll back", fmt.Sprintf("configuration %q", c.name), errors.New(text)))
	}
	to := 0
	switch {
	case body.Tag != "":
		t, err := c.past.Tag(r.Context(), c.key(), body.Tag)
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
	if to < 1 || to >= c.stored.Version {
		return wrong("Rollback Invalid Config Version")
	}
	v, err := c.past.Version(r.Context(), c.key(), to)
	if nf.KindOf(err) == nf.NotFound {
		return wrong("Rollback Get Config Version: it is no longer stored")
	}
	if err != nil {
		return v, fail("Rollback Get Config Version", err)
	}
	return v, nil
}

// restore applies an earlier version as the next one. It uses the same package
// if that still exists, and otherwise the present one of the template.
func (cs configChanges) restore(r *http.Request, history HistoryWriter, c configured, to bundle.Version) (configResult, error) {
	if to.Deleted {
		return cs.change(r, history, c, to.Deletion(c.stored.Version+1), nil)
	}
	q := configRequest{Template: to.Template, Description: to.Description, Values: to.Values}
	parameters, err := q.parameters()
	if err != nil {
		return configResult{}, err
	}
	bundles, err := cs.bundles.ForChange(r.Context(), c.vnf.Instance)
	if err != nil {
		return configResult{}, fail("Apply Config failed", err)
	}
	there, err := bundles.Has(r.Context(), to.Package)
	if err != nil {
		return configResult{}, fail("Apply Config failed", err)
	}
	if !there {
		return cs.configure(r, history, c, q)
	}
	to.Number = c.stored.Version + 1
	return cs.change(r, history, c, to, c.amendment(to.Package, parameters))
}
