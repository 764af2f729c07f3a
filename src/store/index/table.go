package index

import (
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"unique"

	"github.com/google/btree"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// record is the summary of a record. It is never modified.
type record struct {
	key      string
	revision store.Revision
	// doubt is not 0 if the summary may be wrong: after a write with an unknown result,
	// until a read that began later returns. It is the number of the write.
	doubt      int
	scope      unique.Handle[nf.Scope]
	attributes []uint64 // hashes: of two attributes with one hash, the reader of the record finds out which it has
}

// posting is an attribute of a record.
type posting struct {
	attribute uint64
	record    *record
}

// before orders postings by attribute and then by key.
func (p posting) before(o posting) bool {
	if p.attribute != o.attribute {
		return p.attribute < o.attribute
	}
	return p.record.key < o.record.key
}

// table is the index of a table.
type table struct {
	Table

	most int
	seed maphash.Seed
	full chan struct{} // closed if the table has too many records

	mu       sync.Mutex
	records  *btree.BTreeG[*record] // by key; nil if the table has too many
	postings *btree.BTreeG[posting] // of all records
	doubtful int                    // number of records in doubt: none of them may be left out
	filled   bool
	doubts   int
	version  uint64 // number of changes
}

func newTable(t Table, most int) *table {
	out := &table{Table: t, most: most, seed: maphash.MakeSeed(), full: make(chan struct{})}
	out.empty()
	return out
}

// empty removes all records, unless there are too many.
func (t *table) empty() {
	const degree = 32
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.full:
	default:
		t.records, t.doubtful = btree.NewG(degree, func(a, b *record) bool { return a.key < b.key }), 0
		t.postings = btree.NewG(degree, posting.before)
		t.version++
	}
}

func (t *table) setFilled(filled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filled = filled && t.records != nil
}

// current returns the version of the table. It is not known unless the index is in use, and
// has no record whose last write has an unknown result.
func (t *table) current() (version uint64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version, t.filled && t.doubtful == 0
}

func (t *table) status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.records == nil {
		return Status{}
	}
	return Status{Records: t.records.Len(), Filled: t.filled}
}

// find yields the keys of Store.Find, as they are when it is called.
func (t *table) find(start string, c nf.Cursor) (iter.Seq[string], bool) {
	where, from := t.hashes(c.Where), &record{key: start}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.filled {
		return nil, false
	}
	if len(where) == 0 || t.doubtful > 0 {
		records := t.records.Clone()
		return func(yield func(string) bool) {
			visit := func(r *record) bool { return !r.meets(where, c.In) || yield(r.key) }
			if c.Backward {
				records.DescendLessOrEqual(from, func(r *record) bool { return r.key == start || visit(r) })
				return
			}
			records.AscendGreaterOrEqual(from, visit)
		}, true
	}
	first, postings := posting{t.rarest(where), from}, t.postings.Clone()
	return func(yield func(string) bool) {
		visit := func(p posting) bool {
			return p.attribute == first.attribute && (!p.record.meets(where, c.In) || yield(p.record.key))
		}
		if c.Backward {
			postings.DescendLessOrEqual(first, func(p posting) bool { return p.record.key == start && p.attribute == first.attribute || visit(p) })
			return
		}
		postings.AscendGreaterOrEqual(first, visit)
	}, true
}

// rarest returns the attribute that the fewest records have, as far as a short look tells.
// The lock is held.
func (t *table) rarest(where []uint64) uint64 {
	const look = 100 // records
	if len(where) == 1 {
		return where[0]
	}
	best, fewest := where[0], look+1
	for _, attribute := range where {
		n := 0
		t.postings.AscendGreaterOrEqual(posting{attribute, &record{}}, func(p posting) bool {
			if p.attribute != attribute {
				return false
			}
			n++
			return n < fewest
		})
		if n < fewest {
			best, fewest = attribute, n
		}
	}
	return best
}

func (t *table) hashes(of []nf.Attribute) []uint64 {
	out := make([]uint64, len(of))
	for i, a := range of {
		out[i] = maphash.Comparable(t.seed, a)
	}
	return out
}

// meets reports whether the record may have the attributes and be in one of the scopes.
func (r *record) meets(where []uint64, in func(nf.Scope) bool) bool {
	if r.doubt != 0 {
		return true
	}
	for _, wanted := range where {
		if !slices.Contains(r.attributes, wanted) {
			return false
		}
	}
	return in == nil || in(r.scope.Value())
}

// get returns the record of a key, or nil.
func (t *table) get(key string) *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.locked(key)
}

func (t *table) locked(key string) *record {
	if t.records == nil {
		return nil
	}
	r, _ := t.records.Get(&record{key: key})
	return r
}

// older reports whether the index is in use and has neither the revision of a key nor a
// later one.
func (t *table) older(key string, revision store.Revision) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.locked(key)
	return t.records != nil && (r == nil || r.revision < revision)
}

// keep keeps the summary of an entry, unless the index has a later one. An entry that was
// read settles the doubt of the record that was seen before the read.
func (t *table) keep(e store.Entry, seen *record) {
	if seen == nil && !t.older(e.Key, e.Revision) {
		return
	}
	next := t.summaryOf(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.locked(e.Key)
	if have != nil {
		settles := seen != nil && have.doubt == seen.doubt
		if e.Revision < have.revision || e.Revision == have.revision && !settles {
			return
		}
		if next.doubt == 0 && !settles {
			next.doubt = have.doubt
		}
	}
	t.insert(next)
}

// summaryOf returns the record of an entry. Without a summary, it is in doubt.
func (t *table) summaryOf(e store.Entry) *record {
	r := &record{key: e.Key, revision: e.Revision}
	s, err := t.summarize(e.Value)
	if err != nil {
		r.doubt = -1
		return r
	}
	r.scope, r.attributes = unique.Make(s.Scope), t.hashes(s.Attributes)
	return r
}

// insert inserts or replaces a record. If there are too many, it drops all of them. The
// lock is held.
func (t *table) insert(r *record) {
	if t.records == nil {
		return
	}
	t.version++
	if former, had := t.records.ReplaceOrInsert(r); had {
		t.unpost(former)
	}
	for _, attribute := range r.attributes {
		t.postings.ReplaceOrInsert(posting{attribute, r})
	}
	if r.doubt != 0 {
		t.doubtful++
	}
	if t.records.Len() > t.most {
		t.records, t.postings, t.filled = nil, nil, false
		close(t.full)
	}
}

// delete deletes a record that the index has. The lock is held.
func (t *table) delete(r *record) {
	t.version++
	t.records.Delete(r)
	t.unpost(r)
}

// unpost deletes what the index has about a record that it had. The lock is held.
func (t *table) unpost(r *record) {
	for _, attribute := range r.attributes {
		t.postings.Delete(posting{attribute, r})
	}
	if r.doubt != 0 {
		t.doubtful--
	}
}

// doubt records that a write has an unknown result.
func (t *table) doubt(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubts++
	r := &record{key: key}
	if have := t.locked(key); have != nil {
		*r = *have
	}
	r.doubt = t.doubts
	t.insert(r)
}

// drop removes a record that was seen before it was deleted, or before a read that did
// not find it, unless it has changed since.
func (t *table) drop(seen *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seen != nil && t.locked(seen.key) == seen {
		t.delete(seen)
	}
}

// remove removes a record that was deleted at a revision, unless the index has a later one.
func (t *table) remove(key string, revision store.Revision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.locked(key); r != nil && r.revision < revision {
		t.delete(r)
	}
}
