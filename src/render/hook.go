package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// OrderHooks returns hooks in the order in which the hooks of one event run, which is
// Helm's: by weight, then by name, then in KindOrder.
func OrderHooks(hooks []Hook) []Planned {
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), strings.Compare(a.GetName(), b.GetName()), KindOrder(a.GetKind(), b.GetKind()))
	})
	out := make([]Planned, len(sorted))
	for i, h := range sorted {
		out[i] = Planned{
			Object: h.Unstructured, Wait: WaitReady, File: h.File, Line: h.Line, Lines: h.Lines,
			Events: h.Events, Discard: h.Discard, Timeout: h.Timeout,
		}
	}
	return out
}

// HooksOf returns the hooks of an event in the order in which they run.
func (p Plan) HooksOf(event nf.HookEvent) []Planned {
	return slices.DeleteFunc(slices.Clone(p.Hooks), func(h Planned) bool { return !slices.Contains(h.Events, event) })
}

// Discards reports whether a hook's object is deleted at a given time. A hook
// without policies has DiscardBefore.
func (p Planned) Discards(d Discard) bool {
	if len(p.Discard) == 0 {
		return d == DiscardBefore
	}
	return slices.Contains(p.Discard, d)
}
