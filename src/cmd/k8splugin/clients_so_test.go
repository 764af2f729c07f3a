package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// cnfAdapter is how SO's CNF adapter asks: its RestTemplate says that it sends
// JSON even where it sends nothing.
func cnfAdapter(t *testing.T) caller {
	t.Helper()
	return newCaller(t, "Accept", "application/json", "Content-Type", "application/json", "User-Agent", "Apache-HttpClient/4.5.13")
}

// What the adapter reads into: a field that is missing here would be the end of
// what it does.
type (
	soRequest struct {
		Region     string            `json:"cloud-region"`
		Definition string            `json:"rb-name"`
		Version    string            `json:"rb-version"`
		Profile    string            `json:"profile-name"`
		Release    string            `json:"release-name"`
		Labels     map[string]string `json:"labels"`
		Overrides  map[string]string `json:"override-values"`
	}
	soResource struct {
		GVK  struct{ Group, Version, Kind string }
		Name string
	}
	soInstance struct {
		ID        string       `json:"id"`
		Request   soRequest    `json:"request"`
		Namespace string       `json:"namespace"`
		Release   string       `json:"release-name"`
		Resources []soResource `json:"resources"`
	}
	soHealthCheck struct {
		ID     string `json:"healthcheck-id"`
		Status string `json:"status"`
	}
	soStatus struct { // only the request in it is read strictly
		Request   json.RawMessage `json:"request"`
		Ready     bool            `json:"ready"`
		Count     int             `json:"resourceCount"`
		Resources []struct {
			Name   string         `json:"name"`
			Status map[string]any `json:"status"`
		} `json:"resourcesStatus"`
	}
)

// start is what the adapter does before it serves requests: it returns the
// instances, and those of them that it has a subscription of.
func (c caller) start() (all, subscribed []string) {
	c.t.Helper()
	list := c.send(c.t.Context(), "GET", "/v1/instance", nil, c.header...)
	if list.status != http.StatusOK {
		if text := string(list.body); list.status != http.StatusInternalServerError ||
			!strings.Contains(text, "no documents") && !strings.Contains(text, "Did not find any") {
			c.t.Fatalf("the adapter does not start: %d %s", list.status, text)
		}
		return nil, nil
	}
	const reason = "the adapter starts"
	c.list(reason, list)
	for _, in := range strictly[[]soInstance](c.t, reason, list) {
		all = append(all, in.ID)
		got := c.send(c.t.Context(), "GET", subscriptionOf(in.ID), nil, c.header...)
		switch {
		case got.status == http.StatusOK:
			subscribed = append(subscribed, in.ID)
		case got.status < http.StatusInternalServerError || !strings.Contains(string(got.body), "no documents"):
			c.t.Fatalf("the adapter does not start: %d %s", got.status, got.body)
		}
	}
	return all, subscribed
}

func subscriptionOf(id string) string {
	return "/v1/instance/" + id + "/status/subscription/" + id + "-cnf-adapter"
}

// status is one look at how an instance is doing.
func (c caller) status(reason, id string) (soStatus, soRequest) {
	c.t.Helper()
	return c.readStatus(reason, c.ask(reason, http.StatusOK, "GET /v1/instance/"+id+"/status", nil))
}

func (c caller) readStatus(reason string, a answer) (s soStatus, request soRequest) {
	c.t.Helper()
	if err := json.Unmarshal(a.body, &s); err != nil {
		c.t.Fatalf("%s: %v in %s", reason, err, a.body)
	}
	if s.Count != len(s.Resources) {
		c.t.Errorf("%s: %d resources are said to be %d", reason, len(s.Resources), s.Count)
	}
	return s, strictly[soRequest](c.t, reason, answer{request: a.request, body: s.Request})
}

// vfModule is a request for an instance. What is not set, the adapter sends as
// null.
func (c caller) vfModule(release string, more string) string {
	return `{"cloud-region": "RegionOne", "rb-name": "0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01", "rb-version": "6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02", "profile-name": "vfw", "release-name": ` + release + `, ` +
		cmp.Or(more, `"labels": null, "override-values": {"vnf-name": "vfw-1", "ssh.port": "2022", "unset": null}`) + `}`
}

// hook takes the notifications of a subscription.
func hook(t *testing.T) (at string, posts <-chan []byte) {
	t.Helper()
	got := make(chan []byte, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			body = fmt.Appendf(nil, "%s %s %v", r.Method, r.Header.Get("Content-Type"), err)
		}
		select {
		case got <- body:
		default: // more than any client reads
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// TestClientCNFAdapter is what SO's macro flows make the CNF adapter do.
func TestClientCNFAdapter(t *testing.T) {
	t.Parallel()
	c := cnfAdapter(t)
	if all, _ := c.start(); all != nil {
		t.Errorf("there are instances: %v", all)
	}
	c.register("RegionOne")
	c.define("0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01", "6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02", "vfw")
	const lookup = "GET /v1/instance?rb-name=0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01&rb-version=6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02&profile-name=vfw"
	c.told("there is nothing that it could be", http.StatusInternalServerError, lookup, nil, "Did not find any objects with tag: instance")

	release := `"vfw-7b6f4a5e-3c1d-4a0b-8a54-0c9d2b1e7f03"`
	made := c.ask("it is brought up", http.StatusCreated, "POST /v1/instance", c.vfModule(release, ""))
	id := strictly[soInstance](t, "what SO keeps as the stack's id", made).ID
	c.ask("it is read", http.StatusOK, "GET /v1/instance/"+id, nil)
	found := strictly[[]soInstance](t, "the same request finds it", c.ask("it is looked up", http.StatusOK, lookup, nil))
	if len(found) != 1 || `"`+found[0].Release+`"` != release {
		t.Errorf("it is found as %v", found)
	}
	none := c.ask("A8: no instance has the name", http.StatusOK, "GET /v1/instance?rb-name=nope", nil)
	if n := len(c.list("A8: that is no error, and no null", none)); n != 0 {
		t.Errorf("A8: %d have it", n)
	}
	c.ready(id)
	c.inventory(id, found[0])
	c.told("A10: its subscription is not there", http.StatusInternalServerError, "GET "+subscriptionOf(id), nil, "no documents")
	posts := c.subscribe(id)
	c.restart(id)
	c.upgrade(id, release)
	c.notified(id, posts)
	c.health(id)
	c.passThrough(id)
	c.remove(id)
}

// ready polls the status, and nothing else, until all is well.
func (c caller) ready(id string) {
	const reason = "A9: it becomes ready by itself"
	last := c.poll(reason, "GET /v1/instance/"+id+"/status", func(a answer) bool {
		s, _ := c.readStatus(reason, a)
		return s.Ready
	})
	c.keys(reason, last.body, "request", "ready", "resourceCount", "resourcesStatus")
}

// inventory reads what the adapter makes A&AI's entries of: each object has what
// its id is made of.
func (c caller) inventory(id string, in soInstance) {
	c.t.Helper()
	s, request := c.status("the inventory", id)
	if request.Release != in.Release || len(request.Labels) > 0 {
		c.t.Errorf("the request is %+v", request)
	}
	kinds := map[string]int{}
	for _, r := range s.Resources {
		metadata, _ := r.Status["metadata"].(map[string]any)
		for _, field := range []string{"name", "namespace", "resourceVersion"} {
			if text, _ := metadata[field].(string); text == "" {
				c.t.Errorf("%s has no %s", r.Name, field)
			}
		}
		kind, _ := r.Status["kind"].(string)
		kinds[kind]++
	}
	if kinds["Deployment"] != 3 || kinds["Pod"] != 3 || kinds["Network"] != 1 || kinds["ConfigMap"] != 1 {
		c.t.Errorf("the inventory is %v", kinds)
	}
}

// metadata is all that the adapter reads of a notification.
func metadata(id string) map[string]any {
	return map[string]any{
		"instanceId": id, "cloudRegion": "RegionOne", "cloudOwner": "acme", "tenantId": "edge <1>", "callbackUrl": nil,
		"genericVnfId": "4c2b6a80-2f1b-4d3e-b1cd-1f1f0a9c6e04", "vfModuleId": "7b6f4a5e-3c1d-4a0b-8a54-0c9d2b1e7f03",
	}
}

func (c caller) subscribe(id string) <-chan []byte {
	c.t.Helper()
	at, posts := hook(c.t)
	made := c.ask("it is subscribed to", http.StatusCreated, "POST /v1/instance/"+id+"/status/subscription", map[string]any{
		"name": id + "-cnf-adapter", "min-notify-interval": 30, "metadata": metadata(id),
		"callback-url": at + "/api/cnf-adapter/v1/instance/" + id + "/status/notify",
	})
	c.has("the metadata is kept", made, "metadata", any(metadata(id)))
	c.ask("and is there", http.StatusOK, "GET "+subscriptionOf(id), nil)
	// What changes before the first look at the instance is not reported.
	c.poll("it is looked at", "GET "+subscriptionOf(id), func(answer) bool {
		for key := range c.records() {
			if strings.HasPrefix(key, "baselines/") {
				return true
			}
		}
		return false
	})
	return posts
}

// restart starts the adapter while there are instances: one that is its own, and
// one without a subscription.
func (c caller) restart(id string) {
	c.t.Helper()
	other := c.ask("another one, in another namespace", http.StatusCreated, "POST /v1/rb/definition/0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01/6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02/profile",
		map[string]any{"rb-name": "0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01", "rb-version": "6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02", "profile-name": "other", "namespace": clustertest.Namespace(c.t)})
	c.has("its profile", other, "release-name", "other")
	c.ask("its overlay", http.StatusOK, "POST /v1/rb/definition/0e9e9ffd-8d4a-4a6a-9e4a-1b2a8a3a5b01/6f2c4f4d-1e0c-4d77-9c86-9d3d5a4c1a02/profile/other/content", c.tarball("firewall/profile"))
	made := c.ask("is brought up", http.StatusCreated, "POST /v1/instance", strings.Replace(c.vfModule("null", ""), `"vfw"`, `"other"`, 1))
	second := made.text(c.t, "id")
	all, subscribed := c.start()
	if len(all) != 2 || len(subscribed) != 1 || subscribed[0] != id {
		c.t.Errorf("the adapter finds %v, and is subscribed to %v", all, subscribed)
	}
	c.ask("it is not needed any more", http.StatusAccepted, "DELETE /v1/instance/"+second, nil)
}

// upgrade changes the directives: as labels, and as values.
func (c caller) upgrade(id, release string) {
	c.t.Helper()
	const directives = `{"vnf-name": "vfw-2", "global.onapPrivateNetworkName": "other-net"}`
	up := c.ask("it is upgraded", http.StatusCreated, "POST /v1/instance/"+id+"/upgrade", c.vfModule("null", `"labels": `+directives+`, "override-values": `+directives))
	got := strictly[soInstance](c.t, "what comes back", up)
	if got.ID != id || `"`+got.Release+`"` != release {
		c.t.Errorf("%s, the release %s, has become %+v", id, release, got)
	}
	if vnf := value(c.t, c.there("the new values count at once", "v1", "ConfigMap", "ssh-service"), "data", "vnf"); vnf != "vfw-2" {
		c.t.Errorf("the VNF's name is %q", vnf)
	}
	c.there("what is new is there", c.ns+"."+networkGroup+"/v1alpha1", "Network", "other-net")
	if old := c.kubectl(c.ns+"."+networkGroup+"/v1alpha1", "Network", "onap-private-net"); old != nil && old.GetDeletionTimestamp() == nil {
		c.t.Error("what is not of it any more is still there")
	}
	c.ready(id)
}

// notified takes the notification of the upgrade.
func (c caller) notified(id string, posts <-chan []byte) {
	c.t.Helper()
	const reason = "A15: the notification"
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	var post []byte
	select {
	case post = <-posts:
	case <-ctx.Done():
		c.t.Fatal(reason + " does not come")
	}
	c.keys(reason, post, "instance-id", "subscription-name", "metadata", "resource-changes")
	a := answer{request: reason, body: post}
	c.has(reason, a, "instance-id", any(id))
	c.has(reason, a, "subscription-name", any(id+"-cnf-adapter"))
	c.has("A15: the metadata comes back as it was", a, "metadata", any(metadata(id)))
	changed := 0
	for _, how := range []string{"created", "deleted", "modified"} {
		list, ok := a.field(c.t, "resource-changes."+how).([]any)
		if !ok {
			c.t.Errorf("%s: %s is no list in %s", reason, how, post)
		}
		changed += len(list)
		for _, r := range list {
			document, err := json.Marshal(r)
			if err != nil {
				c.t.Fatal(err)
			}
			c.keys(reason, document, "name", "GVK", "status")
		}
	}
	if changed == 0 {
		c.t.Errorf("%s tells of nothing: %s", reason, post)
	}
}

// health runs the tests of the chart.
func (c caller) health(id string) {
	c.t.Helper()
	at := "/v1/instance/" + id + "/healthcheck"
	begun := strictly[soHealthCheck](c.t, "a run has two fields", c.ask("a run is begun", http.StatusCreated, "POST "+at, nil))
	if !strings.EqualFold(begun.Status, "RUNNING") {
		c.t.Errorf("the run is %s", begun.Status)
	}
	ended := c.poll("it ends", "GET "+at+"/"+begun.ID, func(a answer) bool { return !strings.EqualFold(a.text(c.t, "status"), "RUNNING") })
	c.has("and has succeeded", ended, "status", any("Succeeded"))
	c.ask("it is forgotten", http.StatusAccepted, "DELETE "+at+"/"+begun.ID, nil)
	c.told("for good", http.StatusInternalServerError, "GET "+at+"/"+begun.ID, nil, noDocuments)
}

// passThrough is what the adapter asks because it is asked: it hands on what it
// was given, and makes links to itself of it.
func (c caller) passThrough(id string) {
	c.t.Helper()
	query := url.Values{"Kind": {"Deployment"}, "ApiVersion": {"apps/v1"}, "Namespace": {"elsewhere"}, "Labels": {"app=sink,release"}}
	got := c.ask("its own objects, wherever it is said that they are", http.StatusOK, "GET /v1/instance/"+id+"/query?"+query.Encode(), nil)
	s, _ := c.readStatus("a query is like a status", got)
	if s.Ready || s.Count != 1 || s.Resources[0].Name != "sink" {
		c.t.Errorf("the query finds %s", got.body)
	}
	query = url.Values{"CloudRegion": {"RegionOne"}, "Kind": {"Pod"}, "ApiVersion": {"v1"}, "Namespace": {c.ns}, "Labels": {"app=firewall"}}
	all := c.ask("the objects of a region", http.StatusOK, "GET /v1/query?"+query.Encode(), nil)
	c.keys("of nobody's request", all.body, "resourceCount", "resourcesStatus")
	for _, request := range []string{"/status", "/query?ApiVersion=v1&Kind=Pod"} {
		c.told("what is not there", http.StatusInternalServerError, "GET /v1/instance/none"+request, nil, noDocuments)
	}
}

func (c caller) remove(id string) {
	c.t.Helper()
	c.ask("the subscription ends", http.StatusAccepted, "DELETE "+subscriptionOf(id), nil)
	c.ask("and the instance", http.StatusAccepted, "DELETE /v1/instance/"+id, nil)
	c.told("it is gone at once", http.StatusInternalServerError, "GET /v1/instance/"+id, nil, noDocuments)
	if all, _ := c.start(); all != nil {
		c.t.Errorf("the adapter starts with %v", all)
	}
	c.ask("the region waits for what leaves it", http.StatusNoContent, "DELETE /v1/connectivity-info/RegionOne", nil)
}
