package cluster

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// leastName is the length below which a name is not recognized in a string, as
// it may be there by chance.
const leastName = 4

// fingerprinter computes digests of the objects of one owner. The digests of two
// objects are equal if the objects differ only in the names of their owners, and
// these names have the same length, and special characters in the same places.
// An API server that accepts the fields of one object then accepts the fields of
// the other.
type fingerprinter struct {
	owner nf.Subject
	user  string   // who sends the object
	names []string // of the owner, in a fixed order
	order []int    // of the names to look for: the longest first
}

// newFingerprinter returns a fingerprinter for objects that a user sends. Names
// are the strings that differ between one owner's objects and another's, in an
// order that is the same for all owners.
func newFingerprinter(user string, owner nf.Subject, names []string) fingerprinter {
	f := fingerprinter{owner: owner, user: user, names: names}
	for i, name := range names {
		if len(name) >= leastName && strings.ContainsFunc(name, isLetter) {
			f.order = append(f.order, i)
		}
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return len(names[b]) - len(names[a]) })
	return f
}

// of returns the digest of an object.
func (f fingerprinter) of(u *unstructured.Unstructured) digest {
	h := sha256.New()
	f.text(h, f.user)
	f.value(h, u.Object)
	return digest(h.Sum(nil))
}

func (f fingerprinter) value(h hash.Hash, v any) {
	switch v := v.(type) {
	case map[string]any:
		f.fields(h, v)
	case []any:
		fmt.Fprintf(h, "list %d:", len(v))
		for _, item := range v {
			f.value(h, item)
		}
	case string:
		f.text(h, f.shaped(v))
	default:
		f.text(h, fmt.Sprintf("%T %v", v, v))
	}
}

func (f fingerprinter) fields(h hash.Hash, fields map[string]any) {
	byShape := map[string][]string{}
	for name := range fields {
		shape := f.shaped(name)
		byShape[shape] = append(byShape[shape], name)
	}
	label, owner := f.owner.Label()
	fmt.Fprintf(h, "map %d:", len(fields))
	for _, shape := range slices.Sorted(maps.Keys(byShape)) {
		for _, name := range slices.Sorted(slices.Values(byShape[shape])) {
			f.text(h, shape)
			if name == label && fields[name] == owner {
				f.text(h, "owner") // any owner's label is valid
				continue
			}
			f.value(h, fields[name])
		}
	}
}

func (fingerprinter) text(h hash.Hash, s string) { fmt.Fprintf(h, "text %d:%s", len(s), s) }

// shaped returns a string with each of the owner's names replaced by its number
// and its shape. It recognizes only whole words: no letter or digit precedes or
// follows.
func (f fingerprinter) shaped(s string) string {
	var out strings.Builder
	for at := 0; at < len(s); {
		if at > 0 && isWord(s[at-1]) {
			out.WriteByte(s[at])
			at++
			continue
		}
		n := f.nameAt(s, at)
		if n < 0 {
			out.WriteByte(s[at])
			at++
			continue
		}
		fmt.Fprintf(&out, "\x00%d:%s\x00", n, shapeOf(f.names[n]))
		at += len(f.names[n])
	}
	return out.String()
}

// nameAt returns the number of the name that is at a place of a string, or -1.
func (f fingerprinter) nameAt(s string, at int) int {
	for _, n := range f.order {
		end := at + len(f.names[n])
		if strings.HasPrefix(s[at:], f.names[n]) && (end == len(s) || !isWord(s[end])) {
			return n
		}
	}
	return -1
}

// shapeOf returns a name without its content: it keeps the length, the upper case
// and all special characters. A digit counts as a lower-case letter, except
// at the start, where some fields do not allow it.
func shapeOf(name string) string {
	shape := []byte(name)
	for i, c := range shape {
		switch {
		case c >= 'a' && c <= 'z', i > 0 && isDigit(c):
			shape[i] = 'a'
		case c >= 'A' && c <= 'Z':
			shape[i] = 'A'
		case isDigit(c):
			shape[i] = '0'
		}
	}
	return string(shape)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return isDigit(c) || isLetter(rune(c)) }

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
