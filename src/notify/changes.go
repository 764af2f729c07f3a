package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// alteration is what became of one object since the subscriber was told last.
type alteration struct {
	key    string
	ref    nf.Ref
	object map[string]any // nil: it is gone, and nobody knows what it was
	mark   string         // what the subscriber knows then; empty: that it is gone
	known  bool           // the subscriber knew of it before
}

// resource is ONAP's form of an object.
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

// changes is ONAP's form of a letter's content.
type changes struct {
	Created  []json.RawMessage `json:"created"`
	Deleted  []json.RawMessage `json:"deleted"`
	Modified []json.RawMessage `json:"modified"`
}

// letterSize is how many bytes of objects go into one letter: it must fit into a
// record, with its marks.
const letterSize = 512 << 10

// compose writes as many alterations as a letter holds, and returns with them the
// marks that the subscriber will know by it. What does not fit is for the next.
func compose(list []alteration) (json.RawMessage, map[string]string, error) {
	out := changes{Created: []json.RawMessage{}, Deleted: []json.RawMessage{}, Modified: []json.RawMessage{}}
	marks := map[string]string{}
	size := 0
	for _, a := range list {
		text, err := a.write()
		if err != nil {
			return nil, nil, err
		}
		if size += len(text) + 2*len(a.key); size > letterSize && len(marks) > 0 {
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

// write returns the object in ONAP's form. One that would fill a letter alone is
// told by its metadata and status, or by its name.
func (a alteration) write() (json.RawMessage, error) {
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
			return nil, fmt.Errorf("cannot write %s down: %w", a.ref, err)
		}
		if len(text) <= letterSize {
			return text, nil
		}
	}
	return nil, nf.E(nf.TooLarge, "tell of", a.ref.String(), nil)
}

// bare is as much of an object as its name says.
func (a alteration) bare() map[string]any {
	metadata := map[string]any{"name": a.ref.Name}
	if a.ref.Namespace != "" {
		metadata["namespace"] = a.ref.Namespace
	}
	return map[string]any{"apiVersion": a.ref.APIVersion(), "kind": a.ref.Kind, "metadata": metadata}
}

// baseline is what a subscriber knows.
type baseline struct {
	UID    string            `json:"uid"`    // of the subscription
	Number int               `json:"number"` // of the last letter; 0: there was none
	Sent   time.Time         `json:"sent"`   // when that was written
	Kinds  []nf.Ref          `json:"kinds"`  // of the objects below
	Marks  map[string]string `json:"marks"`  // digest of each object, by Ref.Key
}

// learn takes in what a letter told.
func (b *baseline) learn(l letter) {
	b.Number, b.Sent = l.Number, l.Created
	if b.Marks == nil {
		b.Marks = map[string]string{}
	}
	for key, mark := range l.Marks {
		if mark == "" {
			delete(b.Marks, key)
		} else {
			b.Marks[key] = mark
		}
	}
}

// settle keeps of the kinds those that there are objects of, and those asked for.
func (b *baseline) settle(kinds []nf.Ref) {
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

// kindKey names a kind whatever the version, as the keys of its objects do.
func kindKey(k nf.Ref) string { return kindOfKey(nf.Ref{Group: k.Group, Kind: k.Kind}.Key()) }

func kindOfKey(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind
}

// refOf returns what a key names, in the version of one of the kinds.
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

// distinct returns kinds without names, each once, in an order of their own.
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
