package onap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const configs = "/v1/instance/id1/config"

func result(version int, values string) string {
	return fmt.Sprintf(`{"instance-id": "id1", "rb-name": "fw", "rb-version": "1", "profile-name": "edge", "config-name": "c", "template-name": "ssh",
		"description": "d", "values": %s, "config-version": %d, "config-tag": ""}`, values, version)
}

func shownConfig(version int, tag, values string) string {
	return fmt.Sprintf(`{"config-name": "c", "template-name": "ssh", "description": "d", "values": %s, "config-version": %d, "config-tag": %q}`, values, version, tag)
}

// configured makes the instance id1 with the configuration c, in versions 1 to n.
func configured(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t, false)
	w.create(t)
	for i := 1; i <= n; i++ {
		request := "POST " + configs
		if i > 1 {
			request = "PUT " + configs + "/c"
		}
		body := fmt.Sprintf(`{"config-name": "c", "template-name": "ssh", "description": "d", "values": {"n": %d, "image": {"big": 12345678901234567890}}}`, i)
		w.want(t, "a version is made", request, body, 201, result(i, values(i)))
	}
	return w
}

func values(n int) string { return fmt.Sprintf(`{"n": %d, "image": {"big": 12345678901234567890}}`, n) }

func TestConfigs(t *testing.T) {
	t.Parallel()
	w := configured(t, 2)
	spec := w.last().(nf.Spec)
	am := spec.Amendments[0]
	want := nf.Amendment{Name: "c", Package: am.Package, Inputs: nf.Inputs{
		Parameters: map[string]any{"n": 2.0, "image": map[string]any{"big": 12345678901234567890.0}}, KubeVersion: "1.31.0",
		Overrides: map[string]string{"a.b": "x", "k8s-rb-instance-id": "id1"}, ObjectLabels: map[string]string{"tier": "gold"},
	}}
	if diff := cmp.Diff([]nf.Amendment{want}, spec.Amendments); diff != "" || !strings.HasPrefix(am.Package, "rb-") {
		t.Errorf("a value replaces the overrides below it: the amendment of package %q (-want +got):\n%s", am.Package, diff)
	}
	w.want(t, "what is in force is shown", "GET "+configs+"/c", "", 200, shownConfig(2, "", values(2)))
	if got := w.ask(t, "GET "+configs+"/c", ""); !strings.Contains(got.body, `"big":12345678901234567890`) && !strings.Contains(got.body, `"big": 12345678901234567890`) {
		t.Errorf("a large number loses its digits: %s", got.body)
	}
	w.want(t, "in the list, too", "GET "+configs, "", 200, "["+shownConfig(2, "", values(2))+"]")
	w.want(t, "every version has its own values", "GET "+configs+"/c/version", "", 200, "["+shownConfig(1, "", values(1))+","+shownConfig(2, "", values(2))+"]")
	w.want(t, "one by one", "GET "+configs+"/c/version/1", "", 200, shownConfig(1, "", values(1)))
	w.want(t, "a tag", "POST "+configs+"/c/tagit", `{"tag-name": "golden"}`, 200, `{"config-version": 2, "config-tag": "golden"}`)
	w.want(t, "is listed", "GET "+configs+"/c/tag", "", 200, `[{"config-version": 2, "config-tag": "golden"}]`)
	w.want(t, "another version", "PUT "+configs+"/c", `{"values": {"n": 3}, "description": "d"}`, 201, result(3, `{"n": 3}`))
	w.want(t, "the tag leads to the one that had it", "GET "+configs+"/c/tag/golden", "", 200, shownConfig(2, "golden", values(2)))
	w.want(t, "a rollback makes the next version", "POST "+configs+"/c/rollback", `{"config-version": "1"}`, 200, result(4, values(1)))
	w.want(t, "which is like the former", "GET "+configs+"/c", "", 200, shownConfig(4, "", values(1)))
	w.want(t, "a tag will do", "POST "+configs+"/c/rollback", `{"config-tag": "golden"}`, 200, result(5, values(2)))
	w.want(t, "and a number", "POST "+configs+"/c/rollback", `{"config-version": 3}`, 200, result(6, `{"n": 3}`))
	if got := w.last().(nf.Spec).Amendments; len(got) != 1 || !cmp.Equal(got[0].Inputs.Parameters, map[string]any{"n": 3.0}) {
		t.Errorf("what is in force is %+v", got)
	}
}

// TestDeleteConfig deletes what a configuration has laid over its instance. The
// configuration stays, as with ONAP's plugin: its newest version is the deletion.
func TestDeleteConfig(t *testing.T) {
	t.Parallel()
	w := configured(t, 2)
	applied := func(reason string, want ...map[string]any) {
		t.Helper()
		var got []map[string]any
		for _, am := range w.last().(nf.Spec).Amendments {
			got = append(got, am.Inputs.Parameters)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: what is applied (-want +got):\n%s", reason, diff)
		}
	}
	history := func(versions ...string) string { return "[" + strings.Join(versions, ",") + "]" }
	one, two, three := shownConfig(1, "", values(1)), shownConfig(2, "", values(2)), shownConfig(3, "", values(2))
	w.want(t, "a deletion is a version", "POST "+configs+"/c/delete", "", 200, result(3, values(2)))
	applied("its objects are gone")
	w.want(t, "the configuration is there", "GET "+configs+"/c", "", 200, three)
	w.want(t, "in the list, too", "GET "+configs, "", 200, history(three))
	w.want(t, "the deletion is in the history", "GET "+configs+"/c/version", "", 200, history(one, two, three))
	w.want(t, "by its number", "GET "+configs+"/c/version/3", "", 200, three)
	w.want(t, "the deletion can be tagged", "POST "+configs+"/c/tagit", `{"tag-name": "empty"}`, 200, `{"config-version": 3, "config-tag": "empty"}`)
	w.want(t, "and read by its tag", "GET "+configs+"/c/tag/empty", "", 200, shownConfig(3, "empty", values(2)))
	w.want(t, "a second deletion is a further version", "POST "+configs+"/c/delete", "", 200, result(4, values(2)))
	applied("there is nothing left to delete")
	w.want(t, "a rollback to before the deletion", "POST "+configs+"/c/rollback", `{"config-version": "1"}`, 200, result(5, values(1)))
	applied("applies that version", map[string]any{"n": 1.0, "image": map[string]any{"big": 12345678901234567890.0}})
	w.want(t, "which is shown", "GET "+configs+"/c", "", 200, shownConfig(5, "", values(1)))
	w.want(t, "a rollback to a deletion deletes", "POST "+configs+"/c/rollback", `{"config-tag": "empty"}`, 200, result(6, values(2)))
	applied("again")
	w.want(t, "and shows what the deletion showed", "GET "+configs+"/c", "", 200, shownConfig(6, "", values(2)))
	w.want(t, "also once more", "POST "+configs+"/c/rollback", `{"config-version": "3"}`, 200, result(7, values(2)))
	w.want(t, "a change applies values again", "PUT "+configs+"/c", `{"values": {"n": 8}, "description": "d"}`, 201, result(8, `{"n": 8}`))
	applied("which it has", map[string]any{"n": 8.0})
	w.want(t, "deleted once more", "POST "+configs+"/c/delete", "", 200, result(9, `{"n": 8}`))
	w.want(t, "creating it continues the versions", "POST "+configs, `{"config-name": "c", "template-name": "ssh", "description": "d", "values": {"n": 10}}`, 201, result(10, `{"n": 10}`))
	w.want(t, "one that is not deleted cannot be created", "POST "+configs, `{"config-name": "c", "template-name": "ssh"}`, 500, "Create Error - Config exists")
	w.want(t, "the records go after a deletion, too", "POST "+configs+"/c/delete", "", 200, result(11, `{"n": 10}`))
	w.want(t, "with the whole history", "DELETE "+configs+"/c", "", 202, "")
	w.want(t, "none is left", "GET "+configs, "", 200, "[]")
	w.want(t, "nor is a version", "GET "+configs+"/c/version", "", 200, "[]")
}

// TestConfigsAreGoneWithTheirInstance checks that neither a configuration nor its
// history outlives the instance, and that those of a deletion do not, either.
func TestConfigsAreGoneWithTheirInstance(t *testing.T) {
	t.Parallel()
	w := configured(t, 2)
	w.want(t, "one is deleted", "POST "+configs+"/c/delete", "", 200, result(3, values(2)))
	w.want(t, "and tagged", "POST "+configs+"/c/tagit", `{"tag-name": "x"}`, 200, `{"config-version": 3, "config-tag": "x"}`)
	w.want(t, "the instance goes", "DELETE /v1/instance/id1", "", 202, "")
	w.want(t, "and with it the configuration", "GET "+configs, "", 500, "Getting Instance: "+noInstance)
	err := w.records.Sweep(t.Context(), func(ctx context.Context, id string) (bool, error) {
		_, err := w.Instance(ctx, id)
		return err == nil, nf.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range w.kv.List(t.Context(), "onap/config", "") {
		t.Errorf("%s is left: %v", e.Key, err)
	}
}

func TestRemoveConfig(t *testing.T) {
	t.Parallel()
	for flag, left := range map[string]int{"": 0, "?deleteConfigOnly=true": 1} {
		w := configured(t, 2)
		w.want(t, "a tag", "POST "+configs+"/c/tagit", `{"tag-name": "x"}`, 200, `{"config-version": 2, "config-tag": "x"}`)
		w.want(t, "it is accepted", "DELETE "+configs+"/c"+flag, "", 202, "")
		if got := w.last().(nf.Spec).Amendments; len(got) != left {
			t.Errorf("with %q, %d amendments are left, want %d", flag, len(got), left)
		}
		w.want(t, "nothing is remembered", "GET "+configs+"/c/version", "", 200, "[]")
		w.want(t, "and no tag", "GET "+configs+"/c/tag", "", 200, "[]")
		w.want(t, "nor the name", "DELETE "+configs+"/c", "", 500, "Delete Config DB Entry: Key doesn't exist")
		w.want(t, "it begins anew", "POST "+configs, `{"config-name": "c", "template-name": "ssh", "description": "d", "values": {}}`, 201, result(1, "{}"))
		if got := w.last().(nf.Spec).Amendments; len(got) != 1 {
			t.Errorf("with %q, %d amendments are there, want 1", flag, len(got))
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		arrange func(*world)
		request string
		body    string
		status  int
		want    string
	}{
		"Empty":       {reason: "there must be a body", request: "POST " + configs, status: 422, want: "Body empty"},
		"EmptyPut":    {reason: "in a change", request: "PUT " + configs + "/c", status: 422, want: "Body empty"},
		"NotJSON":     {reason: "of JSON", request: "POST " + configs, body: "[", status: 422, want: "the document is not JSON: line 1, column 2: it ends too early"},
		"NoName":      {reason: "with a name", request: "POST " + configs, body: `{"template-name": "ssh"}`, status: 400, want: "Missing name in POST request"},
		"NoTemplate":  {reason: "and a template", request: "POST " + configs, body: `{"config-name": "d"}`, status: 500, want: "Incomplete Configuration Provided"},
		"Values":      {reason: "values are an object", request: "POST " + configs, body: `{"config-name": "d", "template-name": "ssh", "values": [1]}`, status: 422, want: "values: an object is needed, not an array"},
		"Exists":      {reason: "an existing one is not created again, and this is reported", request: "POST " + configs, body: `{"config-name": "c", "template-name": "ssh"}`, status: 500, want: "Create Error - Config exists"},
		"NoSuch":      {reason: "a template must be there", request: "POST " + configs, body: `{"config-name": "d", "template-name": "none"}`, status: 500, want: "Apply Config failed: Getting Template: Error finding master table: mongo: no documents in result"},
		"Missing":     {reason: "what is not there cannot be shown", request: "GET " + configs + "/d", status: 500, want: "Get Config DB Entry: Key doesn't exist"},
		"MissingPut":  {reason: "or changed", request: "PUT " + configs + "/d", body: "{}", status: 500, want: "Update Error - Config doesn't exist: Key doesn't exist"},
		"MissingTag":  {reason: "or tagged", request: "POST " + configs + "/d/tagit", body: `{"tag-name": "x"}`, status: 500, want: "Get Current Config Version: Key doesn't exist"},
		"NoTagName":   {reason: "a tag has a name", request: "POST " + configs + "/c/tagit", body: `{}`, status: 500, want: `TagIt store DB: cannot tag configuration "c": the tag has no name`},
		"NoTag":       {reason: "a tag must be there", request: "GET " + configs + "/c/tag/none", status: 500, want: "Config DB Entry Not found: Key doesn't exist"},
		"NoVersion":   {reason: "a version, too", request: "GET " + configs + "/c/version/9", status: 500, want: "Get Config Version: Key doesn't exist"},
		"BadVersion":  {reason: "and be a number", request: "GET " + configs + "/c/version/x", status: 500, want: "Get Config Version: Invalid version"},
		"BackNowhere": {reason: "a rollback has an aim", request: "POST " + configs + "/c/rollback", body: `{}`, status: 500, want: "No valid Index for Rollback"},
		"BackWord":    {reason: "that is a number", request: "POST " + configs + "/c/rollback", body: `{"config-version": "x"}`, status: 500, want: "Rollback Invalid Index: it is not a number"},
		"BackPresent": {reason: "before the present", request: "POST " + configs + "/c/rollback", body: `{"config-version": "2"}`, status: 500, want: "Rollback Invalid Config Version"},
		"BackZero":    {reason: "and after the beginning", request: "POST " + configs + "/c/rollback", body: `{"config-version": "0"}`, status: 500, want: "Rollback Invalid Config Version"},
		"BackTag":     {reason: "or a tag", request: "POST " + configs + "/c/rollback", body: `{"config-tag": "none"}`, status: 500, want: "Rollback Invalid tag: Config DB Entry Not found: Key doesn't exist"},
		"Failed": {
			reason: "a rejection by the cluster is reported", request: "PUT " + configs + "/c", body: `{"values": {}}`, status: 500,
			arrange: func(w *world) { w.failure = &nf.Failure{Kind: nf.Invalid, Message: "port is no number"} },
			want:    "Apply Config failed: cannot configure VNF instance id1: port is no number",
		},
		"Refused": {
			reason: "and what the engine does", request: "PUT " + configs + "/c", body: `{"values": {}}`, status: 500,
			arrange: func(w *world) { w.fail["Configure"] = nf.E(nf.Invalid, "render", "chart", errors.New("x")) },
			want:    "Apply Config failed: cannot render chart: x",
		},
		"Forbidden": {
			reason: "a caller without the permission is denied", request: "PUT " + configs + "/c", body: `{"values": {}}`, status: 403,
			arrange: func(w *world) { w.rights[nf.ChangeInstance] = true },
			want:    "cannot do instance:change: forbidden",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := configured(t, 2)
			if tc.arrange != nil {
				tc.arrange(w)
			}
			w.want(t, tc.reason, tc.request, tc.body, tc.status, tc.want)
			w.failure, w.fail, w.rights[nf.ChangeInstance] = nil, map[string]error{}, false
			w.want(t, "nothing is recorded of it", "GET "+configs+"/c", "", 200, shownConfig(2, "", values(2)))
			w.want(t, "and no version", "GET "+configs+"/c/version", "", 200, "["+shownConfig(1, "", values(1))+","+shownConfig(2, "", values(2))+"]")
		})
	}
}

// TestConfigHistoryIsMended loses the record of the version that is in force, as
// a crash after the change does.
func TestConfigHistoryIsMended(t *testing.T) {
	t.Parallel()
	w := configured(t, 1)
	w.edit(func(e *engine) {
		in := e.instances["id1"]
		in.Amendments = []nf.Amendment{{Name: "c", Package: in.Amendments[0].Package, Inputs: nf.Inputs{Parameters: map[string]any{"n": 2.0}}}}
		in.Annotations["onap/config/c"] = `{"version": 2, "template": "ssh", "description": "d"}`
		e.instances["id1"] = in
	})
	w.want(t, "the instance knows it", "GET "+configs+"/c", "", 200, shownConfig(2, "", `{"n": 2}`))
	w.want(t, "it is in the history", "GET "+configs+"/c/version", "", 200, "["+shownConfig(1, "", values(1))+","+shownConfig(2, "", `{"n": 2}`)+"]")
	w.want(t, "before the next is made", "PUT "+configs+"/c", `{"description": "d", "values": {"n": 3}}`, 201, result(3, `{"n": 3}`))
	w.want(t, "it is written down", "GET "+configs+"/c/version/2", "", 200, shownConfig(2, "", `{"n": 2}`))
}

// TestConfigsAreTheInstancesOwn checks that a configuration touches no other
// instance of the same bundle and profile.
func TestConfigsAreTheInstancesOwn(t *testing.T) {
	t.Parallel()
	w := configured(t, 1)
	w.want(t, "another of the same kind", "POST /v1/instance", strings.Replace(fwRequest, `"release-name": ""`, `"release-name": "two"`, 1), 201,
		`{"id": "`+fmt.Sprint("id", w.ids+1)+`", `+strings.NewReplacer(`"release-name": ""`, `"release-name": "two"`, "fw-edge", "two").Replace(fwShown)+`}`)
	for id, in := range w.instances {
		if want := map[bool]int{true: 1}[id == "id1"]; len(in.Amendments) != want {
			t.Errorf("%s has %d amendments, want %d", id, len(in.Amendments), want)
		}
	}
}

// TestConfigIsRestoredAsItWas changes a template between a version and the
// return to it.
func TestConfigIsRestoredAsItWas(t *testing.T) {
	t.Parallel()
	w := configured(t, 2)
	first := w.last().(nf.Spec).Amendments[0].Package
	chart := archive(t, map[string]string{"ssh/Chart.yaml": "{apiVersion: v2, name: ssh, version: 1.0.0}"})
	w.want(t, "the template gets a chart", "POST /v1/rb/definition/fw/1/config-template/ssh/content", string(chart), 200, "")
	w.want(t, "that the next version has", "PUT "+configs+"/c", `{"description": "d", "values": {"n": 3}}`, 201, result(3, `{"n": 3}`))
	if got := w.last().(nf.Spec).Amendments[0].Package; got == first {
		t.Errorf("the package is %s still", got)
	}
	w.want(t, "and the return has not", "POST "+configs+"/c/rollback", `{"config-version": "1"}`, 200, result(4, values(1)))
	if got := w.last().(nf.Spec).Amendments[0].Package; got != first {
		t.Errorf("the package is %s, want %s", got, first)
	}
}
