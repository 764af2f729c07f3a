package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// objectChange is the change of one object since the subscriber's last
// notification.
type objectChange struct {
	key    string
	ref    nf.Ref
	object map[string]any // nil: the object was deleted, and its last state is unknown
	mark   string         // digest that the subscriber knows after this change; empty: deleted
	known  bool           // the subscriber was already notified of the object
}

// resource is ONAP's representation of an object.
type resource struct {
	Name   string         `json:"name"`
	GVK    gvk            `json:"GVK"`
	Status map[string]any `json:"status"`
}

type gvk struct {
	Group   string `json:"Group"`
	Version string `json:"Version"`
	Kind    string `json:"Kind"`
}

// changes is ONAP's representation of a notification's content.
type changes struct {
	Created  []json.RawMessage `json:"created"`
	Deleted  []json.RawMessage `json:"deleted"`
	Modified []json.RawMessage `json:"modified"`
}

// maxChangesSize limits the bytes of objects in one notification: it must fit into
// a store record, together with its digests.
const maxChangesSize = 512 << 10

// compose encodes as many changes as fit into one notification. It returns
// with them the digests that the subscriber knows after receiving it. The
// remaining changes are left for the next notification.
func compose(list []objectChange) (json.RawMessage, map[string]string, error) {
	out := changes{Created: []json.RawMessage{}, Deleted: []json.RawMessage{}, Modified: []json.RawMessage{}}
	marks := map[string]string{}
	size := 0
	for _, a := range list {
		text, err := a.write()
		if err != nil {
			return nil, nil, err
		}
		if size += len(text) + 2*len(a.key); size > maxChangesSize && len(marks) > 0 {
			break
		}
		marks[a.key] = a.mark
		switch {
		case a.mark == "":
			out.Deleted = append(out.Deleted, text)
		case a.known:
			out.Modified = append(out.Modified, text)
		default:
			out.Created = append(out.Created, text)
		}
	}
	document, err := json.Marshal(out)
	return document, marks, err
}

// write encodes the object in ONAP's form. If the object alone would exceed
// maxChangesSize, only its metadata and status are written, or only its name.
func (a objectChange) write() (json.RawMessage, error) {
	r := resource{Name: a.ref.Name, GVK: gvk{a.ref.Group, a.ref.Version, a.ref.Kind}, Status: a.bare()}
	if a.object == nil {
		return json.Marshal(r)
	}
	whole := presentable(a.object)
	forms := []map[string]any{whole, {
		"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": whole["metadata"], "status": whole["status"],
	}, a.bare()}
	for _, form := range forms {
		r.Status = form
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", a.ref, err)
		}
		if len(text) <= maxChangesSize {
			return text, nil
		}
	}
	return nil, nf.E(nf.TooLarge, "report", a.ref.String(), nil)
}

// bare returns an object that consists of its identity only.
func (a objectChange) bare() map[string]any {
	metadata := map[string]any{"name": a.ref.Name}
	if a.ref.Namespace != "" {
		metadata["namespace"] = a.ref.Namespace
	}
	return map[string]any{"apiVersion": a.ref.APIVersion(), "kind": a.ref.Kind, "metadata": metadata}
}

// baseline is the state that a subscriber has been notified of.
type baseline struct {
	UID    string            `json:"uid"`    // the subscription's
	Number int               `json:"number"` // of the last notification; 0: none yet
	Sent   time.Time         `json:"sent"`   // when that was stored
	Kinds  []nf.Ref          `json:"kinds"`  // of the objects below
	Marks  map[string]string `json:"marks"`  // digest of each object, by Ref.Key
}

// learn updates the baseline with the content of a notification.
func (b *baseline) learn(number int, sent time.Time, marks map[string]string) {
	b.Number, b.Sent = number, sent
	if b.Marks == nil {
		b.Marks = map[string]string{}
	}
	for key, mark := range marks {
		if mark == "" {
			delete(b.Marks, key)
		} else {
			b.Marks[key] = mark
		}
	}
}

// setKinds sets the baseline's kinds to the given ones and those that it still
// has objects of.
func (b *baseline) setKinds(kinds []nf.Ref) {
	used := map[string]bool{}
	for key := range b.Marks {
		used[kindOfKey(key)] = true
	}
	kept := slices.Clone(kinds)
	for _, k := range b.Kinds {
		if used[kindKey(k)] {
			kept = append(kept, k)
		}
	}
	b.Kinds = distinct(kept)
}

// kindKey returns the key of a kind, without the version, as in its objects'
// keys.
func kindKey(k nf.Ref) string { return kindOfKey(nf.Ref{Group: k.Group, Kind: k.Kind}.Key()) }

func kindOfKey(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind
}

// refOf returns the reference that a key stands for, with the version from the
// kinds.
func refOf(key string, kinds []nf.Ref) nf.Ref {
	kind, rest, _ := strings.Cut(key, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	ref := nf.Ref{Namespace: namespace, Name: name}
	ref.Kind, ref.Group, _ = strings.Cut(kind, ".")
	for _, k := range kinds {
		if kindKey(k) == kind {
			ref.Version = k.Version
		}
	}
	return ref
}

// distinct returns the kinds without names, each once, sorted.
func distinct(kinds []nf.Ref) []nf.Ref {
	byKey := map[string]nf.Ref{}
	for _, k := range kinds {
		if _, known := byKey[kindKey(k)]; !known {
			byKey[kindKey(k)] = nf.Ref{Group: k.Group, Version: k.Version, Kind: k.Kind}
		}
	}
	out := make([]nf.Ref, 0, len(byKey))
	for _, k := range byKey {
		out = append(out, k)
	}
	slices.SortFunc(out, nf.Ref.Compare)
	return out
}
