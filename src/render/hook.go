package render

import (
	"cmp"
	"slices"
	"strings"
)

// OrderHooks returns hooks in the order in which those of one event run: by
// weight, then as KindOrder has it, then by name.
func OrderHooks(hooks []Hook) []Planned {
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), KindOrder(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	out := make([]Planned, len(sorted))
	for i, h := range sorted {
		out[i] = Planned{
			Object: h.Unstructured, Wait: WaitReady, File: h.File, Line: h.Line,
			Events: h.Events, Discard: h.Discard, Timeout: h.Timeout,
		}
	}
	return out
}

// HooksOf returns the hooks of an event, in the order in which they run.
func (p Plan) HooksOf(event Event) []Planned {
	return slices.DeleteFunc(slices.Clone(p.Hooks), func(h Planned) bool { return !slices.Contains(h.Events, event) })
}

// Discards reports whether a hook's object is to be deleted at a moment.
func (p Planned) Discards(d Discard) bool {
	if len(p.Discard) == 0 {
		return d == DiscardBefore
	}
	return slices.Contains(p.Discard, d)
}
