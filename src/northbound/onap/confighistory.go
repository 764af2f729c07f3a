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

// version returns a version of a configuration. The history is written after the
// change: the newest version may be known to the instance's record alone.
func (a *API) version(r *http.Request, c configured, number int) (bundle.Version, error) {
	v, err := a.ledger().Version(r.Context(), c.key(), number)
	if nf.KindOf(err) != nf.NotFound || number != c.memo.Version {
		return v, err
	}
	recorded, ok, e := a.recorded(r, c)
	if e != nil || !ok {
		return v, cmp.Or(e, err)
	}
	return recorded, nil
}

// recorded returns the newest version by what the instance's record says of it;
// false when the record does not say enough.
func (a *API) recorded(r *http.Request, c configured) (bundle.Version, bool, error) {
	switch i := slices.IndexFunc(c.Amendments, func(am nf.Amendment) bool { return am.Name == c.name }); {
	case !c.known:
		return bundle.Version{}, false, nil
	case c.Deleted:
		return a.deletion(r, c)
	case i < 0:
		return bundle.Version{}, false, nil
	default:
		values, err := json.Marshal(c.Amendments[i].Inputs.Parameters)
		if err != nil {
			return bundle.Version{}, false, fmt.Errorf("cannot read the values of configuration %q: %w", c.name, err)
		}
		return bundle.Version{
			ConfigKey: c.key(), Number: c.memo.Version, Template: c.Template, Description: c.memo.Description,
			Package: c.Amendments[i].Package, Values: values, Sensitive: c.Sensitive,
		}, true, nil
	}
}

// deletion returns the newest version of a configuration that was deleted. Every
// change records the version before it, so that the values are in the history.
func (a *API) deletion(r *http.Request, c configured) (bundle.Version, bool, error) {
	v, err := a.ledger().Version(r.Context(), c.key(), cmp.Or(c.Repeats, c.memo.Version-1))
	if err != nil {
		return bundle.Version{}, false, nf.UnlessGone(err)
	}
	return v.Deletion(c.memo.Version), true, nil
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
	if !c.known {
		return answer(w, http.StatusOK, []config{})
	}
	all, err := a.ledger().Versions(r.Context(), c.key())
	if err != nil {
		return fail("Get Config Versions", err)
	}
	last, ok, err := a.recorded(r, c)
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
	if !c.known {
		return answer(w, http.StatusOK, []configTag{})
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
	if !c.known || nf.KindOf(err) == nf.NotFound {
		return noKey("Config DB Entry Not found", c.name)
	}
	if err != nil {
		return fail("Get Config Tag", err)
	}
	return a.answerVersion(w, r, c, t.Number)
}
