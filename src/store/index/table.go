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

// view is the content of an index. A copy stays as it is when the index changes.
type view struct {
	records  *btree.BTreeG[*record] // by key
	postings *btree.BTreeG[posting] // of all records
	doubtful int                    // number of records in doubt: none of them may be left out
}

// table is the index of a table.
type table struct {
	Table

	most int
	seed maphash.Seed
	full chan struct{} // closed if the table has too many records

	mu     sync.Mutex
	now    view // zero if the table has too many records
	filled bool
	doubts int
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
		t.now = view{records: btree.NewG(degree, func(a, b *record) bool { return a.key < b.key }), postings: btree.NewG(degree, posting.before)}
	}
}

func (t *table) setFilled(filled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filled = filled && t.now.records != nil
}

func (t *table) status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.records == nil {
		return Status{}
	}
	return Status{Records: t.now.records.Len(), Filled: t.filled}
}

// find yields the keys of Store.Find, as they are when it is called.
func (t *table) find(start string, c nf.Cursor) (iter.Seq[string], bool) {
	v, filled := t.snapshot()
	if !filled {
		return nil, false
	}
	where := t.hashes(c.Where)
	return func(yield func(string) bool) {
		v.visit(start, where, c.Backward, func(r *record) bool { return !r.meets(where, c.In) || yield(r.key) })
	}, true
}

// snapshot returns the present content, and whether it is that of all records.
func (t *table) snapshot() (view, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.filled {
		return view{}, false
	}
	return view{t.now.records.Clone(), t.now.postings.Clone(), t.now.doubtful}, true
}

// visit visits records from a key on, or backward from before it, until do returns false. It
// leaves out records that have not all of the attributes, unless one is in doubt.
func (v view) visit(start string, where []uint64, backward bool, do func(*record) bool) {
	from := &record{key: start}
	if len(where) == 0 || v.doubtful > 0 {
		if backward {
			v.records.DescendLessOrEqual(from, func(r *record) bool { return r.key == start || do(r) })
			return
		}
		v.records.AscendGreaterOrEqual(from, do)
		return
	}
	attribute := v.rarest(where)
	if backward {
		v.postings.DescendLessOrEqual(posting{attribute, from}, func(p posting) bool {
			return p.attribute == attribute && (p.record.key == start || do(p.record))
		})
		return
	}
	v.postings.AscendGreaterOrEqual(posting{attribute, from}, func(p posting) bool { return p.attribute == attribute && do(p.record) })
}

// rarest returns the attribute that the fewest records have, as far as a short look tells.
func (v view) rarest(where []uint64) uint64 {
	const look = 100 // records
	if len(where) == 1 {
		return where[0]
	}
	best, fewest := where[0], look+1
	for _, attribute := range where {
		n := 0
		v.postings.AscendGreaterOrEqual(posting{attribute, &record{}}, func(p posting) bool {
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
	if t.now.records == nil {
		return nil
	}
	r, _ := t.now.records.Get(&record{key: key})
	return r
}

// older reports whether the index is in use and has neither the revision of a key nor a
// later one.
func (t *table) older(key string, revision store.Revision) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.locked(key)
	return t.now.records != nil && (r == nil || r.revision < revision)
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
	if t.now.records == nil {
		return
	}
	if former, had := t.now.records.ReplaceOrInsert(r); had {
		t.unpost(former)
	}
	for _, attribute := range r.attributes {
		t.now.postings.ReplaceOrInsert(posting{attribute, r})
	}
	if r.doubt != 0 {
		t.now.doubtful++
	}
	if t.now.records.Len() > t.most {
		t.now, t.filled = view{}, false
		close(t.full)
	}
}

// delete deletes a record that the index has. The lock is held.
func (t *table) delete(r *record) {
	t.now.records.Delete(r)
	t.unpost(r)
}

// unpost deletes what the index has about a record that it had. The lock is held.
func (t *table) unpost(r *record) {
	for _, attribute := range r.attributes {
		t.now.postings.Delete(posting{attribute, r})
	}
	if r.doubt != 0 {
		t.now.doubtful--
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
