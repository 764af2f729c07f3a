package helm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The annotations that make an object a hook.
const (
	hookAnnotation    = "helm.sh/hook"
	weightAnnotation  = "helm.sh/hook-weight"
	discardAnnotation = "helm.sh/hook-delete-policy"
)

var (
	events = []nf.HookEvent{
		nf.PreInstall, nf.PostInstall, nf.PreUpgrade, nf.PostUpgrade,
		nf.PreRollback, nf.PostRollback, nf.PreDelete, nf.PostDelete, nf.TestRun,
	}
	discards = []render.Discard{render.DiscardBefore, render.DiscardSuccess, render.DiscardFailure}
)

// The names of Helm 2 that are still in use.
const (
	oldTest = "test-success"
	oldCRD  = "crd-install" // an object that must exist before others are checked
)

// sort adds an object to the definitions, the hooks or the other objects.
func (p *plan) sort(o decoded, r *report) {
	written, isHook := o.marks[hookAnnotation]
	if !isHook {
		p.objects = append(p.objects, o.Object)
		return
	}
	hook := render.Hook{Object: o.Object}
	at := place{o.File, o.Line}
	for _, word := range words(written) {
		event := nf.HookEvent(word)
		switch {
		case word == oldCRD:
			p.define(o.Object, r)
			return
		case word == oldTest:
			event = nf.TestRun
		case !slices.Contains(events, event):
			r.add(at, "metadata.annotations."+hookAnnotation, "%q is not a hook event", word)
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
			r.warn("%s:%d: %s %q is unknown and was ignored", o.File, o.Line, discardAnnotation, word)
		} else if !slices.Contains(found, discard) {
			found = append(found, discard)
		}
	}
	return found
}

// words splits a comma-separated list as Helm does.
func words(list string) []string {
	found := strings.Split(strings.ToLower(list), ",")
	for i, word := range found {
		found[i] = strings.TrimSpace(word)
	}
	return found
}
