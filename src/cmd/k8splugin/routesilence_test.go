package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// collectHidden finds the names that each identity may not see.
func (w *accessWorld) collectHidden() {
	w.hidden = map[string][]string{}
	for _, who := range accesstest.People() {
		for _, o := range slices.Concat(w.native, w.onap) {
			instance := accesstest.May(who, nf.ReadInstance, o.scope)
			// An instance that one may see names its region and its package.
			region := accesstest.May(who, nf.ReadRegion, nf.Scope{Region: o.scope.Region}) || accesstest.May(who, nf.ReadInstance, nf.Scope{Region: o.scope.Region})
			pkg := accesstest.May(who, nf.ReadPackage, nf.Scope{Project: o.scope.Project}) || accesstest.May(who, nf.ReadInstance, nf.Scope{Project: o.scope.Project})
			for name, visible := range map[string]bool{
				"vnf_id": instance, "vnf_instance_id": instance, "occurrence_id": instance, "operation_id": instance, "notification_id": instance, "namespace": instance, "instance": instance, "stack": instance,
				"cloud_region_id": region, "vim_id": region, "cloud-region": region, "site_id": region, "site_operation": region, "csar_id": pkg, "rb-name": pkg,
			} {
				if value := o.vars[name]; value != "" && !visible && !slices.Contains(w.hidden[who], value) {
					w.hidden[who] = append(w.hidden[who], value)
				}
			}
		}
	}
}

// silent looks in a response for names that the caller may not see. The caller
// knows the names that its request contains.
func (w *accessWorld) silent(who string, got answer, typed string) {
	w.t.Helper()
	for _, name := range w.hidden[who] {
		if !strings.Contains(typed, name) && names(strings.ReplaceAll(string(got.body), "token:"+who, ""), name) {
			w.t.Errorf("%s shows %q the name %s: %d %s", got.request, who, name, got.status, got.body)
		}
	}
}

// names reports whether a text has a name as a word of its own.
func names(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(name)
		if !inName(text, begin-1) && !inName(text, end) {
			return true
		}
		from = begin + 1
	}
}

// inName reports whether a text has a byte at i that can be part of a name.
func inName(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	b := text[i]
	return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z'
}

// TestNames proves the search that other tests rely on.
func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "web": true, "web-1": false, "my-web": false, "web1 web": true, `{"name":"web"}`: true, "webweb": false, "Xweb.": true, "the web": true,
	} {
		if got := names(text, "web"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// auditIsSilent reads the audit of all requests as every identity.
func (w *accessWorld) auditIsSilent() {
	w.t.Helper()
	for _, who := range accesstest.People() {
		for path := "/v1/audit?limit=1000"; path != ""; {
			got := w.as(who, "GET", path, nil)
			w.silent(who, got, "")
			link, _, _ := strings.Cut(strings.TrimPrefix(got.header.Get("Link"), "<"), ">")
			path = link
		}
	}
}

// refused makes a request as each identity that may make it, which is refused because
// of the instances that use the object.
func (w *accessWorld) refused(route string, rule routeRule, objects []accessObject) {
	w.t.Helper()
	for _, who := range accesstest.People() {
		for _, o := range objects {
			if rule.sees(who, o.scope) && rule.may(who, o.scope) {
				w.is(who, w.ask(who, route, rule, o), http.StatusConflict)
			}
		}
	}
	w.before = w.revisions() // a removal marks the record before it looks for users
}
