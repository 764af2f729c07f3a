package onapstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The collections.
const (
	bundles     = "rbdef"
	connections = "connection"
	names       = "instanceNames"
)

// master is a record: its key, and for each of its tags the id of the document
// with the data.
type master struct {
	collection string
	text       string            // the key as shown in messages
	key        map[string]string // by the lower-case names of its fields
	tags       map[string]bson.ObjectID
}

func (m master) place(tag string) Place { return Place{m.collection, m.text, tag} }

// reading is an installation that is being read.
type reading struct {
	store *Store
	out   Installation
}

func (r *reading) found(p Place, lost bool, format string, args ...any) {
	r.out.Findings = append(r.out.Findings, Finding{Place: p, Lost: lost, Message: fmt.Sprintf(format, args...)})
}

// Read reads everything except the archives. Problems of single records are in
// the findings. It returns nf.Unreachable if a database does not respond.
func (s *Store) Read(ctx context.Context) (Installation, error) {
	r := &reading{store: s}
	for _, step := range []func(context.Context) error{r.readBundles, r.readConnections, r.readNames, r.readConfigurations} {
		if err := step(ctx); err != nil {
			return Installation{}, err
		}
	}
	return r.out, nil
}

// Content reads an archive. It returns nf.NotFound if the archive does not
// exist, and nf.Invalid if it is not base64.
func (s *Store) Content(ctx context.Context, c Content) ([]byte, error) {
	value, err := s.data(ctx, c.place, c.id)
	if err != nil {
		return nil, err
	}
	text, ok := value.StringValueOK()
	if !ok {
		return nil, nf.E(nf.Invalid, "read", c.place.String(), errors.New("it is not text"))
	}
	archive, decoded := decode(text)
	if !decoded {
		return nil, nf.E(nf.Invalid, "read", c.place.String(), errors.New("it is not base64"))
	}
	return archive, nil
}

// data returns the value that a tag of a record refers to, or nf.NotFound.
func (s *Store) data(ctx context.Context, p Place, id bson.ObjectID) (bson.RawValue, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	raw, err := s.collection(p.Collection).FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return bson.RawValue{}, nf.E(nf.NotFound, "read", p.String(), nil)
	}
	if err != nil {
		return bson.RawValue{}, unreadable("read", p.String(), err)
	}
	return raw.Lookup(p.Tag), nil
}

// holds reports whether the document that a tag refers to exists.
func (s *Store) holds(ctx context.Context, p Place, id bson.ObjectID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	opts := options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})
	err := s.collection(p.Collection).FindOne(ctx, bson.D{{Key: "_id", Value: id}}, opts).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	return err == nil, unreadable("read", p.String(), err)
}

// masters returns the records of a collection, ordered by key.
func (r *reading) masters(ctx context.Context, collection string) ([]master, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*answerTime) // slow: the plugin creates no index
	defer cancel()
	subject := "the collection " + collection
	cursor, err := r.store.collection(collection).Find(ctx, bson.D{{Key: "key", Value: bson.D{{Key: "$exists", Value: true}}}})
	if err != nil {
		return nil, unreadable("read", subject, err)
	}
	var raws []bson.Raw
	if err := cursor.All(ctx, &raws); err != nil {
		return nil, unreadable("read", subject, err)
	}
	known := map[string]bool{}
	var out []master
	for _, raw := range raws {
		m, err := masterOf(collection, raw)
		switch {
		case err != nil:
			r.found(Place{Collection: collection, Key: raw.Lookup("_id").String()}, true, "%s", misshapen(err))
		case known[m.text]:
			r.found(m.place(""), false, "several records have this key; the first one is used")
		default:
			known[m.text] = true
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b master) int { return cmp.Compare(a.text, b.text) })
	return out, nil
}

func masterOf(collection string, raw bson.Raw) (master, error) {
	m := master{collection: collection, tags: map[string]bson.ObjectID{}}
	if err := raw.Lookup("key").Unmarshal(&m.key); err != nil {
		return m, err
	}
	m.text = keyText(m.key)
	elements, err := raw.Elements()
	if err != nil {
		return m, err
	}
	for _, e := range elements {
		if id, ok := e.Value().ObjectIDOK(); ok && e.Key() != "_id" {
			m.tags[e.Key()] = id
		}
	}
	return m, nil
}

// read decodes the document that a tag of a record refers to. It returns false
// if the document is missing or malformed, which it reports as a finding.
func (r *reading) read(ctx context.Context, m master, tag string, into any) (bool, error) {
	p := m.place(tag)
	value, err := r.store.data(ctx, p, m.tags[tag])
	if nf.KindOf(err) == nf.NotFound {
		r.found(p, true, "it refers to a document that does not exist")
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := value.Unmarshal(into); err != nil {
		r.found(p, true, "%s", misshapen(err))
		return false, nil
	}
	return true, nil
}

// content returns the location of a record's archive.
func (r *reading) content(ctx context.Context, m master, tag string) (Content, error) {
	id, tagged := m.tags[tag]
	if !tagged {
		return Content{}, nil
	}
	there, err := r.store.holds(ctx, m.place(tag), id)
	if err != nil {
		return Content{}, err
	}
	if !there {
		r.found(m.place(tag), true, "it refers to a document that does not exist")
		return Content{}, nil
	}
	return Content{place: m.place(tag), id: id}, nil
}

// readBundles reads the rbdef collection, which holds all records except
// connections and names.
func (r *reading) readBundles(ctx context.Context) error {
	all, err := r.masters(ctx, bundles)
	if err != nil {
		return err
	}
	kinds := map[string]func(context.Context, master) error{
		"defmetadata": r.definition, "profilemetadata": r.profile, "confdefmetadata": r.template, "instance": r.instance,
		"instanceStatusSub": func(context.Context, master) error { r.out.Subscriptions++; return nil },
		"instanceHC":        func(context.Context, master) error { r.out.HealthChecks++; return nil },
	}
	for _, m := range all {
		known := false
		for _, tag := range slices.Sorted(maps.Keys(kinds)) {
			if _, tagged := m.tags[tag]; !tagged {
				continue
			}
			known = true
			if err := kinds[tag](ctx, m); err != nil {
				return err
			}
		}
		if !known {
			r.found(m.place(""), false, "it is left over from a deleted record")
		}
	}
	return nil
}

func (r *reading) readConnections(ctx context.Context) error {
	all, err := r.masters(ctx, connections)
	if err != nil {
		return err
	}
	for _, m := range all {
		if _, tagged := m.tags["metadata"]; !tagged {
			r.found(m.place(""), false, "it is left over from a deleted record")
		} else if err := r.connection(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// readNames reads the ids that the plugin has ever assigned. They are in one
// document.
func (r *reading) readNames(ctx context.Context) error {
	all, err := r.masters(ctx, names)
	if err != nil {
		return err
	}
	for _, m := range all {
		var given map[string]any
		if _, tagged := m.tags["names"]; !tagged {
			continue
		}
		ok, err := r.read(ctx, m, "names", &given)
		if err != nil {
			return err
		}
		if ok {
			r.out.Names = slices.Sorted(maps.Keys(given))
		}
	}
	return nil
}
