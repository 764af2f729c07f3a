package manifest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// nearest returns the candidate that a name is probably a misspelling of, or "".
// Case, dashes and underscores do not count. Of the other letters one in four
// may differ, and at most three.
func nearest(name string, candidates []string) string {
	folded, best := fold(name), ""
	if len(name) > maxWord {
		return "" // comparing it would take long, and it is not a typing error
	}
	closest := maxEdits + 1
	for _, candidate := range candidates {
		if candidate == name || len(candidate) > maxWord {
			continue
		}
		other := fold(candidate)
		most := min(max(len(folded), len(other))/4, closest-1)
		if d := distance(folded, other, most); d <= most {
			best, closest = candidate, d
		}
	}
	return best
}

const maxEdits = 3

func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// meantFile suggests which file was meant by the path of one that is not there:
// one of the same name in another folder or with another extension, or one of a
// similar path.
func (r *report) meantFile(name string, files render.Files) string {
	if len(r.found) >= maxShown {
		return ""
	}
	stem := func(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }
	byStem := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Base(file) == path.Base(name) || stem(file) == stem(name) {
			return meant(file)
		}
		byStem[stem(file)] = file
	}
	return meant(byStem[nearest(stem(name), slices.Sorted(maps.Keys(byStem)))])
}

// distance returns how many letters must be added, removed, replaced or swapped
// with their neighbor to make one text the other; most+1 if that is more than
// most. It is the optimal string alignment distance, in bytes.
func distance(a, b string, most int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return most + 1
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		least := next[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
			least = min(least, next[j+1])
		}
		if least > most {
			return most + 1
		}
		before, row = row, next
	}
	return min(row[len(b)], most+1)
}

// meant is the end of a complaint about a misspelling: " (did you mean x?)", or
// nothing.
func meant(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", suggestion)
}
