package tacker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// vims serves the VIMs.
type vims struct {
	regions    Regions
	reader     Reader
	conditions Conditions
}

// document is the answer with one VIM.
type document struct {
	VIM any `json:"vim"`
}

// listing is the answer with many.
type listing struct {
	VIMs []any `json:"vims"`
}

func (vs vims) create(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[request](r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	region, err := in.VIM.region()
	if err != nil {
		return err
	}
	if err := vs.free(ctx, region); err != nil {
		return err
	}
	made, err := vs.regions.Register(ctx, region)
	if err != nil {
		return renamed(err, region)
	}
	if err := vs.sole(ctx, made); err != nil {
		return errors.Join(err, vs.regions.RemoveRegion(ctx, made.ID))
	}
	return northbound.Answer(w, http.StatusCreated, document{vs.show(made)})
}

func (vs vims) list(w http.ResponseWriter, r *http.Request) error {
	filter, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	ctx, out := r.Context(), listing{VIMs: []any{}}
	for g, err := range vs.regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return err
		}
		if filter.names(g) {
			if shown := vs.show(g); filter.matches(shown) {
				out.VIMs = append(out.VIMs, shown.only(filter.fields))
			}
		}
	}
	return northbound.Answer(w, http.StatusOK, out)
}

func (vs vims) get(w http.ResponseWriter, r *http.Request) error {
	found, err := vs.find(r)
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, document{vs.show(found).only(r.URL.Query()["fields"])})
}

func (vs vims) update(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[request](r)
	if err != nil {
		return err
	}
	found, err := vs.find(r)
	if err != nil {
		return err
	}
	ctx, edit := r.Context(), func(g *nf.Region) error { return in.VIM.change(g) }
	wanted := found
	if err := edit(&wanted); err != nil {
		return err
	}
	if err := vs.free(ctx, wanted); err != nil {
		return err
	}
	changed, err := vs.regions.UpdateRegion(ctx, found.ID, edit)
	if err != nil {
		return renamed(err, wanted)
	}
	if err := vs.sole(ctx, changed); err != nil {
		_, undone := vs.regions.UpdateRegion(ctx, found.ID, func(g *nf.Region) error {
			now := vimOf(*g)
			now.Default = false
			g.VIM = &now
			return nil
		})
		return errors.Join(err, undone)
	}
	return northbound.Answer(w, http.StatusOK, document{vs.show(changed)})
}

func (vs vims) remove(w http.ResponseWriter, r *http.Request) error {
	found, err := vs.find(r)
	if err != nil {
		return err
	}
	if err := vs.regions.RemoveRegion(r.Context(), found.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// show returns a VIM with its status.
func (vs vims) show(g nf.Region) answer {
	out := answerOf(g)
	if out.Status = statusUnknown; g.Type == nf.OpenStackRegion {
		return out
	}
	if out.Status = statusActive; vs.conditions.RegionState(g).Condition == nf.RegionUnreachable {
		out.Status = statusUnreachable
	}
	return out
}

// find returns the region of the VIM that the request's path names.
func (vs vims) find(r *http.Request) (nf.Region, error) {
	id := mux.Vars(r)["vim_id"]
	for g, err := range vs.regions.RegionsFrom(r.Context(), nf.Cursor{}) {
		if err != nil {
			return nf.Region{}, err
		}
		if g.IsVIM(id) {
			return g, nil
		}
	}
	// For the audit log: of a caller that may not see all regions, the VIM may be hidden.
	_, _ = vs.reader.Region(r.Context(), id)
	return nf.Region{}, nf.E(nf.NotFound, "find", "VIM "+nf.Clip(id, nf.MaxText), nil)
}

// free returns nf.Exists if another VIM has the name of a region as a VIM, and
// nf.Conflict if the region is to be the default VIM and another one is.
func (vs vims) free(ctx context.Context, wanted nf.Region) error {
	for g, err := range vs.regions.RegionsFrom(ctx, nf.Cursor{}) {
		switch {
		case err != nil:
			return err
		case g.ID == wanted.ID:
		case g.VIMName() == wanted.VIMName():
			return nf.E(nf.Exists, "name", "VIM "+strconv.Quote(wanted.VIMName()), errors.New("another VIM has this name"))
		case vimOf(wanted).Default && vimOf(g).Default:
			return &refusal{
				status: http.StatusConflict, name: "VimDefaultDuplicateException",
				cause: nf.E(nf.Conflict, "set", "the default VIM", errors.New("it is VIM "+g.VIMID()+"; set is_default of that to false first")),
			}
		}
	}
	return nil
}

// sole does what free does for a default VIM that is stored: another request may have
// stored one at the same time.
func (vs vims) sole(ctx context.Context, stored nf.Region) error {
	if !vimOf(stored).Default {
		return nil
	}
	return vs.free(ctx, stored)
}

// renamed names the fields in an error of a region as Tacker's API does.
func renamed(err error, r nf.Region) error {
	if nf.KindOf(err) == nf.Exists {
		return nf.E(nf.Exists, "register", "VIM "+strconv.Quote(r.VIMName()), errors.New("a VIM or a cloud region has this name already"))
	}
	found := nf.ViolationsOf(err)
	if len(found) == 0 {
		return err
	}
	found = slices.Clone(found)
	for i := range found {
		found[i].Field = fieldOf(found[i].Field)
	}
	return nf.E(nf.KindOf(err), "use", "VIM "+strconv.Quote(r.VIMName()), found)
}

// filter selects VIMs, and fields of them.
type filter struct {
	fields []string
	values map[string][]string // any of these, by field
}

// filterOf returns the filter of a query. It returns nf.Invalid for a parameter that
// is not known, which would select all VIMs if it were ignored.
func filterOf(query url.Values) (filter, error) {
	f := filter{fields: query["fields"], values: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch name {
		case "fields":
		case "id", "name", "type", "status", "is_default", "tenant_id":
			f.values[name] = query[name]
		default:
			return f, nf.E(nf.Invalid, "list", "VIMs", nf.Violations{{Field: nf.Clip(name, maxParameter), Message: "is not a known query parameter; use fields, id, name, type, status, is_default or tenant_id"}})
		}
	}
	return f, nil
}

const maxParameter = 64 // bytes of a name that an error quotes

// names reports whether the id and the name match, which need no state.
func (f filter) names(g nf.Region) bool {
	return f.has("id", g.VIMID()) && f.has("name", g.VIMName())
}

// matches reports whether the other fields match.
func (f filter) matches(a answer) bool {
	return f.has("type", string(a.Type)) && f.has("status", a.Status) && f.has("tenant_id", a.Tenant) &&
		f.has("is_default", strconv.FormatBool(a.Default))
}

func (f filter) has(field, value string) bool {
	wanted, asked := f.values[field]
	return !asked || slices.ContainsFunc(wanted, func(text string) bool {
		return text == value || (field == "is_default" || field == "id") && strings.EqualFold(text, value)
	})
}

// vimOf returns a copy of what only Tacker's API knows of a region.
func vimOf(r nf.Region) nf.VIM { return *cmp.Or(r.VIM, &nf.VIM{}) }
