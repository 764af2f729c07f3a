package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindSets shares the kinds of regions that serve the same. It keeps a set only as
// long as a region uses it.
type kindSets struct {
	mu   sync.Mutex
	sets map[[sha256.Size]byte]weak.Pointer[kinds] // by content
}

func newKindSets() *kindSets {
	return &kindSets{sets: map[[sha256.Size]byte]weak.Pointer[kinds]{}}
}

// share returns the kinds, or equal ones that another region uses. Kinds of which some
// groups could not be read are not shared.
func (s *kindSets) share(ks *kinds) *kinds {
	if ks.partial != nil {
		return ks
	}
	content := ks.digest()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.sets[content].Value(); known != nil {
		return known
	}
	s.sets[content] = weak.Make(ks)
	runtime.AddCleanup(ks, s.drop, content)
	return ks
}

// drop removes a set that no region uses any more.
func (s *kindSets) drop(content [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets[content].Value() == nil { // an equal set may have taken its place
		delete(s.sets, content)
	}
}

// digest is equal for equal kinds only.
func (ks *kinds) digest() [sha256.Size]byte {
	type row struct {
		schema.GroupVersionKind
		Resource   string
		Namespaced bool
		Verbs      []string
		Categories []string
	}
	names := slices.SortedFunc(maps.Keys(ks.by), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	h := sha256.New()
	lines := json.NewEncoder(h)
	_ = lines.Encode(ks.machine) // a hash takes all
	for _, name := range names {
		for _, k := range ks.by[name] {
			_ = lines.Encode(row{k.GroupVersionKind, k.resource, k.namespaced, k.verbs, k.categories}) // as above
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
