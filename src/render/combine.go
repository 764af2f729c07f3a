package render

import (
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Combine returns the attachments of a package, and those of a request in addition.
// An attachment of the request replaces the first one of the package that is of the
// same workload, and has the same interface or, if one of the two names no interface,
// the same network. It takes the place of the latter, and its interface if it names
// none. Attach reports wrong workloads.
func (p Plan) Combine(own, requested []nf.Connection) []nf.Connection {
	if len(own) == 0 {
		return requested
	}
	c := combination{all: p.targets(), own: own, replaced: make([]map[*Planned]bool, len(own))}
	at := make([][]nf.Connection, len(own)+1) // the requested ones in the place of each of own, and at the end
	for i := range own {
		c.chosen = append(c.chosen, c.choose(own[i].Workload))
		c.replaced[i] = map[*Planned]bool{}
	}
	for _, r := range requested {
		place, r := c.replace(r)
		at[place] = append(at[place], r)
	}
	var out []nf.Connection
	for i := range own {
		out = append(append(out, at[i]...), c.remaining(i)...)
	}
	return append(out, at[len(own)]...)
}

// combination replaces attachments of a package.
type combination struct {
	all      []target
	own      []nf.Connection
	chosen   []map[*Planned]bool // workloads of each of own
	replaced []map[*Planned]bool // those of them that have another attachment
}

func (c *combination) choose(selector string) map[*Planned]bool {
	out := map[*Planned]bool{}
	chosen, _ := choose(c.all, selector)
	for _, t := range chosen {
		out[t.planned] = true
	}
	return out
}

// replace replaces attachments of the package by one of the request. It returns the
// index of the first one, or the number of all, and the attachment with its interface.
func (c *combination) replace(r nf.Connection) (place int, _ nf.Connection) {
	place = len(c.own)
	var names []string // of the interfaces that it replaces
	for planned := range c.choose(r.Workload) {
		for i, o := range c.own {
			if c.chosen[i][planned] && !c.replaced[i][planned] && replaces(r.Attachment, o.Attachment) {
				c.replaced[i][planned] = true
				place, names = min(place, i), append(names, o.Interface)
				break
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 && r.Interface == "" {
		r.Interface = names[0]
	}
	return place, r
}

// replaces reports whether an attachment of a request replaces one of the package to
// the same workload.
func replaces(requested, own nf.Attachment) bool {
	if requested.Interface == "" || own.Interface == "" {
		return requested.Network == own.Network
	}
	return requested.Interface == own.Interface
}

// remaining returns an attachment of the package for the workloads that still have it.
func (c *combination) remaining(i int) (out []nf.Connection) {
	o := c.own[i]
	if len(c.replaced[i]) == 0 {
		return []nf.Connection{o}
	}
	for _, t := range c.all {
		if c.chosen[i][t.planned] && !c.replaced[i][t.planned] {
			o.Workload = t.Workload.Name()
			out = append(out, o)
		}
	}
	return out
}

// Unselected returns why a selector of an attachment selects no workload of the plan,
// or "".
func (p Plan) Unselected(selector string) (fault string) {
	_, fault = choose(p.targets(), selector)
	return fault
}
