package manifest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// nearest returns the candidate of which a name is probably a misspelling, or
// "". Case, dashes and underscores are ignored. At most a quarter of the other
// characters may differ, and at most three.
func nearest(name string, candidates []string) string {
	folded, best := fold(name), ""
	if len(name) > maxWord {
		return "" // a comparison would take long, and this is not a typing error
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

// fold returns a name in lower case, without dashes and underscores.
func fold(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// suggestFile suggests the intended file for a path that does not exist: a file
// of the same name in another folder or with another extension, or one with a
// similar path.
func (r *report) suggestFile(name string, files render.Files) string {
	if len(r.found) >= maxShown {
		return ""
	}
	stem := func(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }
	byStem := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Base(file) == path.Base(name) || stem(file) == stem(name) {
			return suggestionText(file)
		}
		byStem[stem(file)] = file
	}
	return suggestionText(byStem[nearest(stem(name), slices.Sorted(maps.Keys(byStem)))])
}

// distance returns how many characters must be added, removed, replaced or
// swapped with their neighbor to turn one text into the other. It returns
// most+1 if that is more than most. It is the optimal string alignment distance
// in bytes. It computes only the part of the table in which the distance can be
// small enough.
func distance(a, b string, most int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return most + 1
	}
	rows := make([]int, 3*(len(b)+1))
	before, row, next := rows[:len(b)+1], rows[len(b)+1:2*len(b)+2], rows[2*len(b)+2:]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		first, last := max(0, i-most), min(len(b), i+most+1)
		next[first] = most + 1
		if first == 0 {
			next[0] = i + 1
		}
		least := next[first]
		for j := first; j < last; j++ {
			above := most + 1
			if j+1 <= i+most {
				above = row[j+1] + 1
			}
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(above, next[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
			least = min(least, next[j+1])
		}
		if least > most {
			return most + 1
		}
		before, row, next = row, next, before
	}
	return min(row[len(b)], most+1)
}

// suggestionText returns the end of a message about a misspelling, " (did you mean x?)",
// or "".
func suggestionText(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", suggestion)
}
