package main

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// accessObject is something that requests name, and where it is.
type accessObject struct {
	scope nf.Scope          // of an instance of it
	vars  map[string]string // by the names of the routes' variables
}

// filled returns a text with the object's names.
func (o accessObject) filled(text string) string {
	for name, value := range o.vars {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// absent returns an object that does not exist, and whose names have the length of
// this one's.
func (o accessObject) absent(names []string) accessObject {
	out := accessObject{scope: o.scope, vars: maps.Clone(o.vars)}
	for i, name := range names {
		out.vars[name] = strings.Repeat(string(rune('m'+i)), len(o.vars[name]))
	}
	return out
}

// masked returns a text with the names that an object was asked for by instead of
// their values.
func (o accessObject) masked(text string, names []string) string {
	names = slices.SortedFunc(slices.Values(names), func(a, b string) int { return len(o.vars[b]) - len(o.vars[a]) })
	for _, name := range names {
		text = strings.ReplaceAll(text, o.vars[name], "{"+name+"}")
	}
	return text
}

// accessWorld is a service with objects of every kind in two regions and in three
// projects; the third is that of ONAP's API.
type accessWorld struct {
	*roleWorld

	native, onap []accessObject
	hidden       map[string][]string // the names that each identity may not see
	reads        *readCounter
	copies       int                       // of an instance and a package, by pageCosts
	before       map[string]store.Revision // the store
	asked        []string                  // who has made a request since
}

func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	reads, written := &readCounter{}, startAAI(t).settings("k8s-resource")
	w := &accessWorld{reads: reads, roleWorld: &roleWorld{
		testService: startServiceOver(t, reads.of, func(c *Config) { c.AccessFile = accesstest.File(t) }, written),
		kubeconfig:  base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
		archive: rendertest.Zip(map[string]string{
			"metadata.yaml": "resources:\n- configMap: [cm.yaml]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n",
		}),
	}}
	sites := map[string]string{}
	for _, region := range []string{accesstest.East, accesstest.West} {
		in := siteOf(sitetest.New(t), region+"-site", building(t))
		in["cloud_region_id"] = region
		sites[region] = w.want(http.StatusCreated, w.as(admin, "POST", "/v1/sites", in)).text(t, "operation_id")
		w.connect(region)
	}
	w.defineBundle()
	for _, region := range []string{accesstest.East, accesstest.West} {
		for _, project := range []string{accesstest.ProjectA, accesstest.ProjectB} {
			w.native = append(w.native, w.nativeObject(project, region, sites[region]))
		}
		w.onap = append(w.onap, w.onapObject(region))
	}
	untilIndexed(t, w.parts)
	w.collectHidden()
	w.before = w.revisions()
	return w
}

const admin = "admin-all"

// connect keeps what ONAP's API knows of the connection to a region.
func (w *accessWorld) connect(id string) {
	w.t.Helper()
	region, err := w.parts.catalog.Region(w.t.Context(), id)
	if err == nil {
		err = w.parts.bundles.PutConnection(w.t.Context(), bundle.Connection{
			Region: id, Registered: region.Created, Owner: "acme", Records: []map[string]string{{"connectivity-record-name": "ovn", "password": "s3cret"}},
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *accessWorld) nativeObject(project, region, siteOperation string) accessObject {
	w.t.Helper()
	w.as(admin, "PUT", "/v1/packages/pkg-"+project+"?project="+project, w.archive) // twice, and the second time it is there
	ns := clustertest.Namespace(w.t)
	made := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": region, "csar_id": "pkg-" + project, "project": project, "namespace": ns,
	}))
	id, op := made.text(w.t, "vnf_id"), made.text(w.t, "operation_id")
	w.want(http.StatusOK, w.as(admin, "GET", "/v1/operations/"+op+"/events", nil)) // ends with the operation
	network := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/networks", map[string]any{
		"name": "of-" + project, "cloud_region_id": region, "project": project, "driver": "multus", "spec": map[string]any{"existing": map[string]string{"namespace": "default", "name": "uplink"}},
	})).text(w.t, "network_id")
	volume := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/volumes", map[string]any{
		"name": "of-" + project + "-" + region, "cloud_region_id": region, "project": project, "size": "1Gi", "retention": "delete", "source": map[string]any{"nfs": map[string]string{"server": "10.0.0.1", "path": "/" + project}},
	})).text(w.t, "volume_id")
	service := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/services", map[string]any{
		"service_id": "of-" + project + "-" + region, "project": project, "members": []any{map[string]any{"name": "one", "cloud_region_id": region, "csar_id": "pkg-" + project, "namespace": clustertest.Namespace(w.t)}},
	})).text(w.t, "service_id")
	vnf, occurrence := w.vnfOf(project, region)
	vars := map[string]string{
		"service_id": service, "vnf_instance_id": vnf, "occurrence_id": occurrence, "project": project, "network_id": network, "volume_id": volume, "cloud_region_id": region, "csar_id": "pkg-" + project, "vnf_id": id, "namespace": ns, "operation_id": op,
		"vim_id": nf.Region{ID: region}.VIMID(), "number": "1", "amendment": "more", "artifact_path": "cm.yaml", "notification_id": w.die(id, w.subscribed(id), 1), "site_id": region + "-site", "site_operation": siteOperation,
	}
	maps.Copy(vars, w.vnfNames(project, region))
	return accessObject{scope: nf.Scope{Project: project, Region: region}, vars: vars}
}

func (w *accessWorld) defineBundle() {
	w.t.Helper()
	const fw = "/v1/rb/definition/firewall/1"
	chart := rendertest.TarGz(map[string]string{
		"fw/Chart.yaml": "apiVersion: v2\nname: fw\nversion: 1.0.0\n", "fw/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fw}\n",
	})
	w.want(http.StatusCreated, w.as(admin, "POST", "/v1/rb/definition", map[string]any{"rb-name": "firewall", "rb-version": "1"}))
	w.want(http.StatusOK, w.as(admin, "POST", fw+"/content", chart))
	w.want(http.StatusCreated, w.as(admin, "POST", fw+"/config-template", map[string]any{"template-name": "ssh"}))
}

func (w *accessWorld) onapObject(region string) accessObject {
	w.t.Helper()
	ctx, fw, ns, profile := w.t.Context(), "/v1/rb/definition/firewall/1", clustertest.Namespace(w.t), "of-"+region
	w.want(http.StatusCreated, w.as(admin, "POST", fw+"/profile", map[string]any{"profile-name": profile, "namespace": ns}))
	w.want(http.StatusOK, w.as(admin, "POST", fw+"/profile/"+profile+"/content", rendertest.TarGz(map[string]string{"manifest.yaml": "version: v1\n"})))
	made := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/instance", map[string]any{
		"rb-name": "firewall", "rb-version": "1", "profile-name": profile, "cloud-region": region, "labels": map[string]string{"stack-name": "stack-" + region},
	}))
	id := made.text(w.t, "id")
	w.want(http.StatusCreated, w.as(admin, "POST", "/v1/instance/"+id+"/config", map[string]any{"config-name": "c", "template-name": "ssh"}))
	w.want(http.StatusOK, w.as(admin, "POST", "/v1/instance/"+id+"/config/c/tagit", map[string]any{"tag-name": "x"}))
	in, err := w.parts.engine.Instance(ctx, id)
	if err == nil {
		err = w.parts.bundles.InstanceRecords().AddRun(ctx, bundle.Run{ID: "run", Instance: id, Operation: in.LastOperation})
	}
	if err == nil { // as if the instance had been moved
		_, err = w.parts.bundles.InstanceRecords().Realias(ctx, id, func(a *bundle.Alias) error {
			a.Leaving = []string{"gone"} // until the janitor drops it, after ten minutes
			return nil
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return accessObject{scope: nf.Scope{Project: nf.DefaultProject, Region: region}, vars: map[string]string{
		"rb-name": "firewall", "rb-version": "1", "profile-name": profile, "template-name": "ssh", "cloud-owner": "acme", "cloud-region": region,
		"instance": id, "config": "c", "tag": "x", "version": "1", "healthcheck": "run", "subscription": "so", "stack": "stack-" + region,
	}}
}

// routesOf returns what an API routes: "GET /v1/keys".
func routesOf(t *testing.T, api interface{ Routes(r *mux.Router) }) []string {
	t.Helper()
	router := mux.NewRouter()
	api.Routes(router)
	var out []string
	err := router.Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := northbound.Template(r)
		if err != nil {
			return err
		}
		methods, err := r.GetMethods()
		for _, method := range methods {
			out = append(out, method+" "+path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// denied makes the requests of a route that must be denied for an identity,
// and returns how many there were.
func (w *accessWorld) denied(who, route string, rule routeRule, o accessObject) int {
	w.t.Helper()
	method, path := rule.target(route)
	ask := func(o accessObject) answer { return w.ask(who, route, rule, o) }
	switch {
	case who == accesstest.Anonymous:
		w.is(who, ask(o), http.StatusUnauthorized)
	case rule.open:
		ask(o)
		return 0
	case rule.list:
		if rule.need != "" && !rule.may(who, nf.Scope{Project: nf.DefaultProject}) {
			w.is(who, ask(o), http.StatusForbidden)
		} else {
			ask(o)
		}
	case !rule.sees(who, o.scope):
		names := rule.hidden(who, path, o.scope)
		none := o.absent(names)
		w.alike(who, rule, exchanged{o, ask(o)}, exchanged{none, ask(none)}, names)
	case rule.may(who, o.scope):
		if method == http.MethodGet || strings.Contains(rule.query, "dry_run=true") {
			ask(o)
		}
		return 0
	default:
		w.is(who, ask(o), http.StatusForbidden)
	}
	w.asked = append(w.asked, who)
	return 1
}

// ask makes the request of a route on an object. The answer names nothing that its
// reader may not see.
func (w *accessWorld) ask(who, route string, rule routeRule, o accessObject) answer {
	w.t.Helper()
	method, path := rule.target(route)
	var body any
	switch {
	case rule.archive:
		body = w.archive
	case rule.body != "":
		body = []byte(o.filled(rule.body))
	}
	got := w.json(who, method, o.filled(path+rule.query), body)
	if !rule.whole || !accesstest.May(who, nf.WriteRegion, nf.Scope{Region: o.scope.Region}) {
		w.silent(who, got, o.filled(path+rule.query+rule.body))
	}
	return got
}

// json sends a request whose body is a document, whatever the test's client takes
// bytes for.
func (w *accessWorld) json(who, method, path string, body any) answer {
	w.t.Helper()
	media := "application/json"
	if method == http.MethodPatch {
		media = "application/merge-patch+json"
	}
	if content, _ := body.([]byte); slices.Equal(content, w.archive) && len(content) > 0 {
		media = "application/zip"
	}
	headers := []string{"Content-Type", media}
	if version := sol013.VersionOf(path); version != "" {
		headers = append(headers, "Version", version)
	}
	return w.as(who, method, path, body, headers...)
}

func (w *accessWorld) is(who string, got answer, status int) {
	w.t.Helper()
	if got.status != status {
		w.t.Errorf("%s by %q: status %d, want %d: %s", got.request, who, got.status, status, got.body)
	}
}

// unique are the parts of an answer that are another one's each time.
var unique = regexp.MustCompile(`("request_id":")[A-Z0-9]+|Date:.*\n|X-Request-Id:.*\n`)

// exchanged is the answer to a request on an object.
type exchanged struct {
	object accessObject
	answer answer
}

// text is the whole answer, without the names that the object was asked for by.
func (e exchanged) text(who string, names []string) string {
	var header strings.Builder
	_ = e.answer.header.Write(&header)
	said := strings.ReplaceAll(fmt.Sprintf("%d\n%s\n%s", e.answer.status, header.String(), e.answer.body), "token:"+who, "{who}")
	return e.object.masked(unique.ReplaceAllString(said, "$1"), names)
}

// alike compares the answers for an object that is hidden and for one that does
// not exist.
func (w *accessWorld) alike(who string, rule routeRule, hidden, absent exchanged, names []string) {
	w.t.Helper()
	if rule.taken && hidden.answer.status == http.StatusConflict {
		return // that an id is taken cannot be hidden
	}
	if diff := cmp.Diff(absent.text(who, names), hidden.text(who, names)); diff != "" {
		w.t.Errorf("%s by %q, who may not see it (-absent +hidden):\n%s", hidden.answer.request, who, diff)
	}
}

// unchanged fails when the store is another one than before.
func (w *accessWorld) unchanged(route string) {
	w.t.Helper()
	now := w.revisions()
	if !maps.Equal(w.before, now) {
		w.t.Errorf("%s has changed the store, asked for by %q, who may not (-before +after):\n%s", route, w.asked, cmp.Diff(w.before, now))
	}
	w.before, w.asked = now, nil
}

// revisions returns the revision of each record in the store, except for the audit
// and for what the service keeps of itself.
func (w *accessWorld) revisions() map[string]store.Revision {
	w.t.Helper()
	out := map[string]store.Revision{}
	for e, err := range w.db.db.List(w.t.Context(), "", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if !slices.ContainsFunc(append(leases(), "claims/", "audit/"), func(table string) bool { return strings.HasPrefix(e.Key, table) }) {
			out[e.Key] = e.Revision
		}
	}
	return out
}
