package cluster

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	mostFields   = 50  // fields of one object that a drift lists
	longestValue = 256 // bytes of a text that a drift shows
)

// fieldOwner is one entry of an object's managed fields.
type fieldOwner struct {
	manager string
	applied bool   // by server-side apply
	via     string // the subresource
	at      time.Time
	fields  *fieldpath.Set
}

// fieldOwners returns the managers of an object's fields.
func fieldOwners(u *unstructured.Unstructured) ([]fieldOwner, error) {
	var out []fieldOwner
	for _, f := range u.GetManagedFields() {
		o := fieldOwner{manager: f.Manager, applied: f.Operation == metav1.ManagedFieldsOperationApply, via: f.Subresource, fields: &fieldpath.Set{}}
		if f.Time != nil {
			o.at = f.Time.Time
		}
		if f.FieldsV1 != nil {
			if err := o.fields.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
				return nil, fmt.Errorf("cannot read the managed fields of %s: %w", f.Manager, err)
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// ownedFields returns the fields of a manager; if applied is set, only those that it has
// applied.
func ownedFields(all []fieldOwner, manager string, applied bool) *fieldpath.Set {
	out := &fieldpath.Set{}
	for _, o := range all {
		if o.manager == manager && (o.applied || !applied) {
			out = out.Union(o.fields)
		}
	}
	return out
}

// ownerAt returns the last manager of a field, or of fields above or below it, other
// than the owner's.
func ownerAt(all []fieldOwner, ours string, path fieldpath.Path) (last fieldOwner) {
	want := path.String()
	for _, o := range all {
		if o.manager == ours || o.at.Before(last.at) && last.manager != "" {
			continue
		}
		covers := false
		o.fields.Leaves().Iterate(func(p fieldpath.Path) {
			has := p.String()
			covers = covers || isBelow(has, want) || isBelow(want, has)
		})
		if covers {
			last = o
		}
	}
	return last
}

// isBelow reports whether a path is another one, or begins with it.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// valueAt returns the value at a path. The value of an item of a set is the item
// itself.
func valueAt(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			m, _ := v.(map[string]any)
			next, ok := m[*e.FieldName]
			if !ok {
				return nil, false
			}
			v = next
		default:
			list, _ := v.([]any)
			at := itemAt(list, e)
			if at < 0 {
				return nil, false
			}
			v = list[at]
		}
	}
	return v, true
}

// itemAt returns the index of the item of a list that an element of a path names, or
// -1.
func itemAt(list []any, e fieldpath.PathElement) int {
	if e.Index != nil {
		if *e.Index < len(list) {
			return *e.Index
		}
		return -1
	}
	return slices.IndexFunc(list, func(item any) bool {
		if e.Value != nil {
			return same(item, (*e.Value).Unstructured())
		}
		m, ok := item.(map[string]any)
		for _, key := range *e.Key {
			has, there := m[key.Name]
			// The key may have a default, such as the protocol of a port.
			if ok = ok && (!there || same(has, key.Value.Unstructured())); !ok {
				break
			}
		}
		return ok
	})
}

// same compares values that may be numbers of different types.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b) }

// missingFrom returns the shortest part of a path that an object does not have.
func missingFrom(object map[string]any, path fieldpath.Path) fieldpath.Path {
	for n := range path {
		if _, there := valueAt(object, path[:n+1]); !there {
			return path[:n+1]
		}
	}
	return path
}

// removeAt removes the field at a path of an object, if there is one.
func removeAt(object map[string]any, path fieldpath.Path) {
	parent, ok := valueAt(object, path[:len(path)-1])
	if !ok {
		return
	}
	last := path[len(path)-1]
	if m, is := parent.(map[string]any); is && last.FieldName != nil {
		delete(m, *last.FieldName)
		return
	}
	list, _ := parent.([]any)
	at := itemAt(list, last)
	if at < 0 || len(path) < 2 || path[len(path)-2].FieldName == nil {
		return
	}
	if holder, is := valueAt(object, path[:len(path)-2]); is {
		if m, isMap := holder.(map[string]any); isMap {
			m[*path[len(path)-2].FieldName] = slices.Delete(slices.Clone(list), at, at+1)
		}
	}
}

// shownPath returns a path in the form of nf.DriftField.
func shownPath(path fieldpath.Path) string {
	var out string
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			out = member(out, *e.FieldName)
		case e.Index != nil:
			out += "[" + strconv.Itoa(*e.Index) + "]"
		case e.Value != nil:
			out += "[" + fmt.Sprint((*e.Value).Unstructured()) + "]"
		case e.Key != nil:
			var keys []string
			for _, k := range *e.Key {
				keys = append(keys, k.Name+"="+fmt.Sprint(k.Value.Unstructured()))
			}
			out += "[" + strings.Join(keys, ",") + "]"
		}
	}
	return out
}

// shown returns the drift as callers see it.
func (d objectDrift) shown(u *unstructured.Unstructured) nf.Drift {
	out := nf.Drift{Ref: d.ref, Missing: d.missing}
	if d.why != nil {
		said := nf.TextOf(d.why)
		// A user who may read the drift is perhaps not allowed to see the instance that has the object.
		said.Mentions, _ = nf.FilterMentions(said.Mentions, func(string) (hide bool, err error) { return true, nil })
		out.Message = said.String()
	}
	values := difference{secret: u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"}
	ours := ownManager(u)
	for i, f := range d.fields {
		if i == mostFields {
			break
		}
		path := shownPath(f.path)
		field := nf.DriftField{Path: path, Taken: f.taken}
		if !f.taken {
			field.Applied, field.Found = values.brief(path, f.now), values.brief(path, f.old)
		}
		if by := ownerAt(d.managers, ours, f.path); by.manager != "" {
			field.Manager, field.Via, field.At = by.manager, by.via, by.at.UTC()
		}
		out.Fields = append(out.Fields, field)
	}
	slices.SortFunc(out.Fields, func(a, b nf.DriftField) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// ownManager returns the field manager of the owner of an object to apply.
func ownManager(u *unstructured.Unstructured) string { return manager(nf.OwnerOf(u.GetLabels())) }

// brief returns a value that a drift shows: long texts are cut, and values of Secrets
// are masked.
func (d *difference) brief(path string, value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if d.hides(path) {
			return nf.Masked
		}
		if len(v) > longestValue {
			return strings.ToValidUTF8(v[:longestValue], "") + "…"
		}
		return v
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(out) == mostFields {
				break
			}
			out[key] = d.brief(member(path, key), v[key])
		}
		return out
	case []any:
		out := []any{}
		for i, item := range v[:min(len(v), mostFields)] {
			out = append(out, d.brief(fmt.Sprintf("%s[%d]", path, i), item))
		}
		return out
	}
	return value
}
