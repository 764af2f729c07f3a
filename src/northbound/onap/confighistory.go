package onap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// version returns a version of a configuration. The history is written after
// the change, so the newest version may be only in the instance's annotations.
func (c configured) version(r *http.Request, number int) (bundle.Version, error) {
	v, err := c.past.Version(r.Context(), c.key(), number)
	if nf.KindOf(err) != nf.NotFound || number != c.stored.Version {
		return v, err
	}
	recorded, ok, e := c.recorded(r)
	if e != nil || !ok {
		return v, cmp.Or(e, err)
	}
	return recorded, nil
}

// recorded returns the newest version according to the instance's record, or
// false if the record is not sufficient.
func (c configured) recorded(r *http.Request) (bundle.Version, bool, error) {
	switch i := slices.IndexFunc(c.vnf.Amendments, func(am nf.Amendment) bool { return am.Name == c.name }); {
	case !c.known:
		return bundle.Version{}, false, nil
	case c.stored.Deleted:
		return c.deletion(r)
	case i < 0:
		return bundle.Version{}, false, nil
	default:
		values, err := json.Marshal(c.vnf.Amendments[i].Inputs.Parameters)
		if err != nil {
			return bundle.Version{}, false, fmt.Errorf("cannot read the values of configuration %q: %w", c.name, err)
		}
		return bundle.Version{
			ConfigKey: c.key(), Number: c.stored.Version, Template: c.stored.Template, Description: c.stored.Description,
			Package: c.vnf.Amendments[i].Package, Values: values, Sensitive: c.vnf.Sensitive,
		}, true, nil
	}
}

// deletion returns the newest version of a deleted configuration. Every change
// records the previous version first, so the history has the values.
func (c configured) deletion(r *http.Request) (bundle.Version, bool, error) {
	v, err := c.past.Version(r.Context(), c.key(), cmp.Or(c.stored.Repeats, c.stored.Version-1))
	if err != nil {
		return bundle.Version{}, false, nf.IgnoreNotFound(err)
	}
	return v.Deletion(c.stored.Version), true, nil
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

// remember records the newest version before a change, because the instance's
// annotations will hold only the next one. For an unknown configuration, it
// deletes the history that an interrupted removal may have left.
func (c configured) remember(r *http.Request, history HistoryWriter) error {
	if !c.known {
		return history.DeleteConfig(r.Context(), c.key())
	}
	now, ok, err := c.recorded(r)
	if err != nil || !ok {
		return err
	}
	return history.Record(r.Context(), now)
}

// newest returns the newest version of a configuration, as clients see it.
func (c configured) newest(r *http.Request) (config, error) {
	v, err := c.version(r, c.stored.Version)
	if err != nil {
		return config{}, fail("Get Config DB Entry", err)
	}
	tags, err := c.past.Tags(r.Context(), c.key())
	if err != nil {
		return config{}, fail("Get Config DB Entry", err)
	}
	return shownVersion(v, tags), nil
}

func (cs configs) listVersions(w http.ResponseWriter, r *http.Request) error {
	c, err := cs.of(r)
	if err != nil {
		return err
	}
	if !c.known {
		return answer(w, http.StatusOK, []config{})
	}
	all, err := c.past.Versions(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Versions", err)
	}
	last, ok, err := c.recorded(r)
	if err != nil {
		return fail("Get Config Versions", err)
	}
	if ok && !slices.ContainsFunc(all, func(v bundle.Version) bool { return v.Number == last.Number }) {
		all = append(all, last)
	}
	tags, err := c.past.Tags(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Versions", err)
	}
	out := []config{}
	for _, v := range all {
		out = append(out, shownVersion(v, tags))
	}
	return answer(w, http.StatusOK, out)
}

func (cs configs) getVersion(w http.ResponseWriter, r *http.Request) error {
	c, err := cs.of(r)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(mux.Vars(r)["version"])
	if err != nil || number < 1 {
		return failAs("Get Config Version: Invalid version", nf.E(nf.Invalid, "get", "the version", strconv.ErrSyntax))
	}
	return cs.answerVersion(w, r, c, number)
}

func (cs configs) answerVersion(w http.ResponseWriter, r *http.Request, c configured, number int) error {
	if !c.known {
		return noKey("Get Config Version", c.name)
	}
	v, err := c.version(r, number)
	if nf.KindOf(err) == nf.NotFound {
		return noKey("Get Config Version", c.name)
	}
	if err != nil {
		return fail("Get Config Version", err)
	}
	tags, err := c.past.Tags(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Version", err)
	}
	return answer(w, http.StatusOK, shownVersion(v, tags))
}

func (cs configs) listTags(w http.ResponseWriter, r *http.Request) error {
	c, err := cs.of(r)
	if err != nil {
		return err
	}
	if !c.known {
		return answer(w, http.StatusOK, []configTag{})
	}
	tags, err := c.past.Tags(r.Context(), c.key())
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

func (cs configs) getTagged(w http.ResponseWriter, r *http.Request) error {
	c, err := cs.of(r)
	if err != nil {
		return err
	}
	t, err := c.past.Tag(r.Context(), c.key(), mux.Vars(r)["tag"])
	if !c.known || nf.KindOf(err) == nf.NotFound {
		return noKey("Config DB Entry Not found", c.name)
	}
	if err != nil {
		return fail("Get Config Tag", err)
	}
	return cs.answerVersion(w, r, c, t.Number)
}
