package helm

import (
	"reflect"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// identity distinguishes an object from all others of a region.
type identity struct{ group, kind, namespace, name string }

func identityOf(o render.Object) identity {
	kind := o.GroupVersionKind()
	return identity{kind.Group, kind.Kind, o.GetNamespace(), o.GetName()}
}

// planOf returns a plan that contains only the definitions of a chart and its
// subcharts.
func (d *decoder) planOf(c *chart.Chart) plan {
	p := plan{defined: map[identity]render.Object{}}
	for _, o := range d.definitions(c) {
		p.define(o, d.report)
	}
	return p
}

// define adds an object to the definitions, unless one of them is the same
// object: a subchart brings its definitions once for each of its aliases, and
// Helm skips a definition that exists.
func (p *plan) define(o render.Object, r *report) {
	o.Shared = true
	key := identityOf(o)
	first, again := p.defined[key]
	if !again {
		p.defined[key] = o
		p.definitions = append(p.definitions, o)
		return
	}
	if !reflect.DeepEqual(first.Object, o.Object) {
		r.warn("%s:%d: %s %q is ignored, because %s:%d defines it with other content", o.File, o.Line, key.kind, key.name, first.File, first.Line)
	}
}
