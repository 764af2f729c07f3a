package onap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

func shownObject(group, kind, name, owner string) string {
	api := strings.TrimPrefix(group+"/v1", "/")
	labels := ""
	if owner != "" {
		labels = `"` + nf.OwnerLabel + `": "` + owner + `"`
	}
	return `{"name": "` + name + `", "GVK": {"Group": "` + group + `", "Version": "v1", "Kind": "` + kind + `"}, "status":
		{"apiVersion": "` + api + `", "kind": "` + kind + `", "metadata": {"name": "` + name + `", "namespace": "edge", "labels": {` + labels + `}}}}`
}

func ref(group, kind, name string) nf.Ref {
	return nf.Ref{Group: group, Version: "v1", Kind: kind, Namespace: "edge", Name: name}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	configMap, web := shownObject("", "ConfigMap", "web", "id1"), shownObject("apps", "Deployment", "web", "id1")
	plain := configMap + "," + web
	cases := map[string]struct {
		reason  string
		arrange func(*world)
		status  int
		ready   string
		count   string
		objects string
		text    string
		gone    bool // the bundle
	}{
		"Ready": {reason: "everything is as it should be, whatever hooks have left", status: 200, ready: "true", count: "2", objects: plain},
		"Ill":   {reason: "one object that is not is enough", arrange: func(w *world) { w.ill = true }, status: 200, ready: "false", count: "2", objects: plain},
		"Hooks": {
			reason: "while hooks run, it is not ready", status: 200, ready: "false", count: "2", objects: plain,
			arrange: func(w *world) {
				in, op := w.instances["id1"], w.operations["op-a"]
				in.State, in.Operation, op.State = nf.Instantiating, op.ID, nf.Running
				w.instances["id1"], w.operations["op-a"] = in, op
			},
		},
		"More": {
			reason: "its pods and what its profile names are its, and each is there once", status: 200, ready: "true", count: "4",
			arrange: func(w *world) {
				w.live.more = []map[string]any{
					object(ref("", "Pod", "web-1"), "id1"), object(ref("", "Pod", "other"), "id2"),
					object(ref("example.org", "Gizmo", "g"), "id1"),
				}
			},
			objects: plain + "," + shownObject("", "Pod", "web-1", "id1") + "," + shownObject("example.org", "Gizmo", "g", "id1"),
		},
		"NotServed": {
			reason: "a type that the region does not know has no objects", status: 200, ready: "true", count: "2", objects: plain,
			arrange: func(w *world) { w.live.served = func(kind string) bool { return kind != "Gizmo" } },
		},
		"Refused": {
			reason: "a type that may not be listed hides no other", status: 200, ready: "true", count: "3",
			arrange: func(w *world) {
				w.live.more = []map[string]any{object(ref("", "Pod", "web-1"), "id1")}
				w.live.refused = map[string]error{"Gizmo": nf.E(nf.Failed, "list", "Gizmo objects", errors.New("forbidden"))}
			},
			objects: plain + "," + shownObject("", "Pod", "web-1", "id1"),
		},
		"API away": {
			reason: "nor does one whose API is away", status: 200, ready: "true", count: "2", objects: plain,
			arrange: func(w *world) {
				w.live.refused = map[string]error{"Gizmo": nf.E(nf.Unreachable, "read the API of", "cloud region", errors.New("away"))}
			},
		},
		"NoProfile": {
			reason: "whether the profile is still there does not matter", status: 200, ready: "true", count: "2", objects: plain,
			gone: true,
		},
		"Missing": {
			reason: "an object that is missing fails the call, as in ONAP", status: 500, arrange: func(w *world) { w.live.gone["web"] = true },
			text: "Getting Resources Status:\nConfigMap web: not found\nDeployment web: not found",
		},
		"Making": {
			reason: "unless it is still being made", status: 200, ready: "false", count: "1", objects: configMap,
			arrange: func(w *world) {
				w.live.gone["Deployment"] = true
				in, op := w.instances["id1"], nf.Operation{ID: "op-z", Verb: nf.Upgrade, State: nf.Running}
				in.State, in.Operation = nf.Updating, op.ID
				w.instances["id1"], w.operations["op-z"] = in, op
			},
		},
		"Pruned": {
			reason: "or it was deleted by an upgrade whose hooks run", status: 200, ready: "false", count: "1", objects: configMap,
			arrange: func(w *world) {
				w.live.gone["Deployment"] = true
				in, op := w.instances["id1"], nf.Operation{ID: "op-z", Verb: nf.Upgrade, State: nf.Running, Applied: noon(3)}
				in.State, in.Operation = nf.Updating, op.ID
				w.instances["id1"], w.operations["op-z"] = in, op
			},
		},
		"Tested": {
			reason: "a test explains nothing", status: 500, text: "Getting Resources Status:\nDeployment web: not found",
			arrange: func(w *world) {
				w.live.gone["Deployment"] = true
				in, op := w.instances["id1"], nf.Operation{ID: "op-z", Verb: nf.Test, State: nf.Running}
				in.Operation = op.ID
				w.instances["id1"], w.operations["op-z"] = in, op
			},
		},
		"Passing": {
			reason: "or has gone by itself", status: 200, ready: "true", count: "1", objects: web,
			arrange: func(w *world) {
				w.live.gone["ConfigMap"] = true
				in := w.instances["id1"]
				in.Inventory[0].Passing = true
				w.instances["id1"] = in
			},
		},
		"Away": {
			reason: "a region that is away is an error", status: 500, arrange: func(w *world) { w.live.err = nf.E(nf.Unreachable, "list", "Pod objects", errors.New("away")) },
			text: "Getting Resources Status: cannot list Pod objects: away",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.create(t)
			if tc.arrange != nil {
				tc.arrange(w)
			}
			if tc.gone {
				if err := w.bundles.RemoveDefinition(t.Context(), "fw", "1"); err != nil {
					t.Fatal(err)
				}
			}
			want := tc.text
			if tc.status == 200 {
				want = `{"request": ` + fwRequest + `, "ready": ` + tc.ready + `, "resourceCount": ` + tc.count + `, "resourcesStatus": [` + tc.objects + `]}`
			}
			w.want(t, tc.reason, "GET /v1/instance/id1/status", "", tc.status, want)
		})
	}
}

func TestQueryInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.live.more = []map[string]any{object(ref("", "Pod", "web-1"), "id1"), object(ref("", "Pod", "other"), "id2")}
	w.live.served = func(kind string) bool { return kind == "Pod" }
	one := `{"request": ` + fwRequest + `, "ready": false, "resourceCount": 1, "resourcesStatus": [` + shownObject("", "Pod", "web-1", "id1") + `]}`
	none := `{"request": ` + fwRequest + `, "ready": false, "resourceCount": 0, "resourcesStatus": []}`
	w.want(t, "what bears its label is its", "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Pod&Namespace=other&Name=n&Labels=a%3Db", "", 200, one)
	want := search{"east", onap.Query{APIVersion: "v1", Kind: "Pod", Namespace: "edge", Name: "n", Labels: "a=b," + nf.OwnerLabel + "=id1"}}
	if got := w.live.asked[len(w.live.asked)-1]; got != want {
		t.Errorf("the region is asked for %+v, want %+v", got, want)
	}
	w.want(t, "whoever may do so asks for another's", "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Pod&Labels="+nf.OwnerLabel+"%3Did2", "", 200,
		strings.NewReplacer("web-1", "other", `"id1"`, `"id2"`).Replace(one))
	w.rights[nf.WriteRegion] = true
	w.want(t, "whoever may not sees none", "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Pod&Labels="+nf.OwnerLabel+"%3Did2", "", 200, none)
	w.want(t, "and his own", "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Pod&Labels="+nf.OwnerLabel+"%3Did1", "", 200, one)
	w.want(t, "a version must be said", "GET /v1/instance/id1/query?Kind=Pod", "", 400, "Missing ApiVersion mandatory parameter")
	w.want(t, "and a kind", "GET /v1/instance/id1/query?ApiVersion=v1", "", 400, "Missing Kind mandatory parameter")
	w.want(t, "an error is one line", "GET /v1/instance/id1/query?ApiVersion=v1&Kind=Gizmo", "", 500, "Query Resources: cannot list Gizmo objects: unsupported")
}

func TestQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.live.more = []map[string]any{
		object(ref("", "Pod", "web-1"), "id1"), object(ref("", "Pod", "other"), "id2"), object(ref("", "Pod", "nobodys"), ""),
	}
	pods := func(n string, objects ...string) string {
		return `{"resourceCount": ` + n + `, "resourcesStatus": [` + strings.Join(objects, ",") + `]}`
	}
	mine, other, nobodys := shownObject("", "Pod", "web-1", "id1"), shownObject("", "Pod", "other", "id2"), shownObject("", "Pod", "nobodys", "")
	const query = "GET /v1/query?CloudRegion=east&ApiVersion=v1&Kind=Pod&Namespace=ns&Name=n&Labels=a"
	w.want(t, "who may register the region sees everything", query, "", 200, pods("3", mine, other, nobodys))
	want := search{"east", onap.Query{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "n", Labels: "a"}}
	if got := w.live.asked[len(w.live.asked)-1]; got != want {
		t.Errorf("the region is asked for %+v, want %+v", got, want)
	}
	w.rights[nf.WriteRegion] = true
	w.want(t, "who may not sees what belongs to instances that he sees", query, "", 200, pods("1", mine))
	w.rights[nf.ReadRegion] = true
	if got := w.ask(t, query, ""); got.status != 403 {
		t.Errorf("who may not see the region gets %d %s", got.status, got.body)
	}
	for _, name := range []string{"CloudRegion", "ApiVersion", "Kind"} {
		w.want(t, "three parameters are required", strings.Replace(query, name+"=", "x=", 1), "", 400, "Missing "+name+" mandatory parameter")
	}
	w.want(t, "a region must be there", strings.Replace(query, "east", "north", 1), "", 500,
		"Query Resources: Getting CloudRegion Information: Error finding master table: mongo: no documents in result")
}
