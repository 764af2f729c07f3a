package helm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The annotations by which an object is a hook.
const (
	hookAnnotation    = "helm.sh/hook"
	weightAnnotation  = "helm.sh/hook-weight"
	discardAnnotation = "helm.sh/hook-delete-policy"
)

var (
	events = []render.Event{
		render.PreInstall, render.PostInstall, render.PreUpgrade, render.PostUpgrade,
		render.PreRollback, render.PostRollback, render.PreDelete, render.PostDelete, render.TestRun,
	}
	discards = []render.Discard{render.DiscardBefore, render.DiscardSuccess, render.DiscardFailure}
)

// The names of Helm 2 that are still met.
const (
	oldTest = "test-success"
	oldCRD  = "crd-install" // an object that must be there before others are checked
)

// sort puts an object where it belongs: among the definitions, the hooks or the
// other objects.
func (p *plan) sort(o decoded, r *report) {
	written, isHook := o.marks[hookAnnotation]
	if !isHook {
		p.objects = append(p.objects, o.Object)
		return
	}
	hook := render.Hook{Object: o.Object}
	at := place{o.File, o.Line}
	for _, word := range words(written) {
		event := render.Event(word)
		switch {
		case word == oldCRD:
			o.Shared = true
			p.definitions = append(p.definitions, o.Object)
			return
		case word == oldTest:
			event = render.TestRun
		case !slices.Contains(events, event):
			r.add(at, "metadata.annotations."+hookAnnotation, "%q is no event of hooks", word)
			return
		}
		if !slices.Contains(hook.Events, event) {
			hook.Events = append(hook.Events, event)
		}
	}
	hook.Weight = weightOf(o, r)
	hook.Discard = discardsOf(o, r)
	p.hooks = append(p.hooks, hook)
}

func weightOf(o decoded, r *report) int {
	written, given := o.marks[weightAnnotation]
	weight, err := strconv.Atoi(written)
	if given && err != nil {
		r.warn("%s:%d: %s is not a number, and counts as 0", o.File, o.Line, weightAnnotation)
		return 0
	}
	return weight
}

func discardsOf(o decoded, r *report) []render.Discard {
	written, given := o.marks[discardAnnotation]
	if !given {
		return nil
	}
	var found []render.Discard
	for _, word := range words(written) {
		discard := render.Discard(word)
		if !slices.Contains(discards, discard) {
			r.warn("%s:%d: %s %q is unknown, and ignored", o.File, o.Line, discardAnnotation, word)
		} else if !slices.Contains(found, discard) {
			found = append(found, discard)
		}
	}
	return found
}

// words takes a list with commas apart, as Helm reads it.
func words(list string) []string {
	found := strings.Split(strings.ToLower(list), ",")
	for i, word := range found {
		found[i] = strings.TrimSpace(word)
	}
	return found
}
