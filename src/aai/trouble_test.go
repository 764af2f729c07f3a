package aai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestTroubles writes an instance while something is wrong, and then again.
func TestTroubles(t *testing.T) {
	t.Parallel()
	resource := scheme.Resources(instance())[0].Path
	cases := map[string]struct {
		reason  string
		batch   int
		trouble func(v *inventory)
		fails   bool
		parked  int
		missing []string
		objects int // that A&AI has then
		mend    func(v *inventory)
	}{
		"lost response": {"a change whose response is lost is found", 0, func(v *inventory) { v.simulator.Script(simulator.Fault{Path: bulkPath, Cut: true}) }, true, 0, nil, 3, nil},
		"lost request":  {"a change that is lost is repeated", 0, func(v *inventory) { v.simulator.Script(simulator.Fault{Path: bulkPath, Status: 503, Cut: true}) }, true, 0, nil, 0, nil},
		"away":          {"A&AI is away", 0, func(v *inventory) { v.simulator.Script(simulator.Fault{Status: 503, Times: -1}) }, true, 0, nil, 0, func(v *inventory) { v.simulator.Repair() }},
		"no VNF": {"SO has not made the VNF yet", 0, func(v *inventory) { v.delete(vnfPath) }, false, 0, []string{vnfPath, modulePath}, 0, func(v *inventory) {
			v.as("PUT", vnfPath, `{"vnf-type":"x"}`)
			v.as("PUT", modulePath, `{}`)
		}},
		"no module":  {"nor the module", 0, func(v *inventory) { v.delete(modulePath) }, false, 0, []string{modulePath}, 0, func(v *inventory) { v.as("PUT", modulePath, `{}`) }},
		"no tenant":  {"nor the operator the tenant", 0, func(v *inventory) { v.delete(tenantPath) }, false, 0, []string{tenantPath}, 0, func(v *inventory) { v.as("PUT", tenantPath, `{"tenant-name":"x"}`) }},
		"no network": {"an object that misses nothing is written", 0, func(v *inventory) { v.delete("/network/l3-networks/l3-network/r1.n3") }, false, 0, []string{"/network/l3-networks/l3-network/r1.n3"}, 2, func(v *inventory) { v.write([]aai.Document{scheme.Network(network())}, nil, true) }},
		"foreign": {"an object of others is not touched", 0, func(v *inventory) {
			v.as("PUT", resource, `{"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","data-owner":"CnfAdapter"}`)
		}, false, 1, nil, 3, func(v *inventory) { v.delete(resource) }},
		"ownerless": {"nor is one without owner", 0, func(v *inventory) {
			v.as("PUT", tenantPath+"/vservers/vserver/5b1d", `{"vserver-name":"","vserver-selflink":""}`)
		}, false, 1, nil, 3, func(v *inventory) { v.delete(tenantPath + "/vservers/vserver/5b1d") }},
		"smaller": {"A&AI permits fewer changes than is known", 60, func(*inventory) {}, false, 0, nil, 3, nil},
		"single":  {"one change in a transaction is enough", 1, func(*inventory) {}, false, 0, nil, 3, nil},
		"timeout": {"a transaction over A&AI's limit of time is divided", 0, func(v *inventory) { v.simulator.Script(simulator.Fault{Path: bulkPath, Code: 7406}) }, false, 0, nil, 3, nil},
		"storage": {"a conflict in A&AI's database is tried later", 0, func(v *inventory) { v.simulator.Script(simulator.Fault{Path: bulkPath, Code: 6134}) }, true, 0, nil, 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, tc.batch)
			v.write([]aai.Document{scheme.Network(network())}, nil, false)
			tc.trouble(v)
			r, err := v.writer.Write(t.Context(), all(instance()), nil, false)
			if (err != nil) != tc.fails || len(r.Parked) != tc.parked {
				t.Errorf("%s: got %+v, %v", tc.reason, r, err)
			}
			if diff := cmp.Diff(tc.missing, r.Missing); diff != "" {
				t.Errorf("%s: other objects are missing (-want +got):\n%s", tc.reason, diff)
			}
			if tc.mend == nil {
				v.simulator.Repair()
			}
			n := 0
			for _, d := range all(instance()) {
				if w := v.as("GET", d.Path, ""); w.Code == http.StatusOK {
					n++
				}
			}
			if n != tc.objects && !strings.HasPrefix(name, "away") {
				t.Errorf("%s: A&AI has %d objects, want %d", tc.reason, n, tc.objects)
			}
			if tc.mend != nil {
				tc.mend(v)
			}
			r = v.write(all(instance()), r.Written, false)
			if r = v.write(all(instance()), r.Written, true); r.Transactions != 0 {
				t.Errorf("%s: it is not complete in the end", tc.reason)
			}
		})
	}
}

// TestRejected wants an object that A&AI rejects among others.
func TestRejected(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(d *aai.Document)
		want   string // in the reason
	}{
		"type": {"a value has another type", func(d *aai.Document) { d.Attributes["vserver-name"] = 5 }, "(3000)"},
		"edge": {"an edge has no rule, which A&AI reports as a missing object", func(d *aai.Document) { d.Edges = []string{regionPath} }, "(6129)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, 0)
			v.write([]aai.Document{scheme.Network(network())}, nil, false)
			in := instance()
			for i := range 5 {
				in.Pods = append(in.Pods, aai.Pod{UID: fmt.Sprint("u", i), Name: fmt.Sprint("p", i)})
			}
			docs := all(in)
			bad := slices.IndexFunc(docs, func(d aai.Document) bool { return strings.HasSuffix(d.Path, "/u3") })
			tc.spoil(&docs[bad])
			r, err := v.writer.Write(t.Context(), docs, nil, false)
			if err != nil || len(r.Parked) != 1 || !strings.Contains(r.Parked[docs[bad].Path], tc.want) {
				t.Errorf("%s: got %+v, %v, want that it alone is parked", tc.reason, r, err)
			}
			for i, d := range docs {
				if exists := v.read(d.Path) != nil; exists != (i != bad) {
					t.Errorf("%s: %s exists: %t", tc.reason, d.Path, exists)
				}
			}
			v.requests()
			if r, err = v.writer.Write(t.Context(), docs, r.Written, false); err != nil || len(r.Parked) != 1 || r.Transactions != 0 {
				t.Errorf("%s: the next call concerns it alone: %+v, %v", tc.reason, r, err)
			}
		})
	}
}

// TestBlocked deletes an object that A&AI keeps, because others are related to it.
func TestBlocked(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	net := v.write([]aai.Document{scheme.Network(network())}, nil, false)
	v.write(all(instance()), nil, false)
	const ip = tenantPath + "/vservers/vserver/5b1d/l-interfaces/l-interface/net1/l3-interface-ipv4-address-list/10.0.3.7/relationship-list/relationship"
	const subnet = `{"related-link":"/network/l3-networks/l3-network/r1.n3/subnets/subnet/r1.n3-0"}`
	v.as("PUT", ip, subnet)
	r, err := v.writer.Write(t.Context(), nil, net.Written, false)
	if err != nil || len(r.Parked) != 1 || len(r.Written) != 1 {
		t.Fatalf("got %+v, %v, want that the deletion is parked, and not forgotten", r, err)
	}
	v.as("DELETE", ip, subnet)
	v.write(nil, r.Written, false)
}

// TestTakenOver deletes objects that belong to another client meanwhile.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	r := v.write(scheme.Resources(instance()), nil, false)
	path := scheme.Resources(instance())[0].Path
	v.as("PATCH", path, `{"data-owner":"CnfAdapter"}`)
	if r = v.write(nil, r.Written, false); len(r.Written) != 0 || v.read(path) == nil {
		t.Errorf("SO's adapter has taken the object over, and it must stay: %v", r.Written)
	}
}

// TestRaces has another client change an object between each GET and PUT.
func TestRaces(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		times  int
		fails  bool
	}{
		"four":     {"the fifth attempt succeeds", 4, false},
		"for ever": {"then the writer gives way for a while", -1, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, 0)
			n := network()
			r := v.write([]aai.Document{scheme.Network(n)}, nil, false)
			n.Active = false
			changed := scheme.Network(n)
			v.simulator.Script(simulator.Fault{Path: bulkPath, Times: tc.times, Before: func() { v.as("PATCH", changed.Path, `{}`) }})
			r, err := v.writer.Write(t.Context(), []aai.Document{changed}, r.Written, false)
			if (err != nil) != tc.fails {
				t.Errorf("%s: got %+v, %v", tc.reason, r, err)
			}
			v.simulator.Repair()
			v.write([]aai.Document{changed}, r.Written, false)
		})
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	w := aai.NewWriter(v.client(func(c *aai.ClientConfig) {
		c.Credentials = func(context.Context) (string, nf.Secret) { return "u", nf.Secret("wrong") }
	}), "k8splugin", 0)
	if _, err := w.Write(t.Context(), all(instance()), nil, false); !errors.Is(err, aai.ErrDenied) {
		t.Errorf("got %v, want that all writes must stop", err)
	}
	if _, err := w.Write(t.Context(), all(instance()), nil, true); !errors.Is(err, aai.ErrDenied) {
		t.Errorf("got %v, want that reads stop, too", err)
	}
	v.simulator.Deny("/network/l3-networks")
	if _, err := v.writer.Write(t.Context(), []aai.Document{scheme.Network(network())}, nil, false); !errors.Is(err, aai.ErrDenied) {
		t.Errorf("got %v, want that the account lacks a right", err)
	}
}

func TestIntentions(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	intended := aai.Written(nil).Intend(all(instance()))
	if _, err := v.writer.Write(t.Context(), all(instance()), nil, false); err != nil {
		t.Fatal(err)
	}
	// The process crashes here, and only knows what it intended.
	r := v.write(nil, intended, false)
	if len(r.Written) != 0 || v.read(tenantPath+"/k8s-resources") != nil {
		t.Errorf("objects remain: %v", r.Written)
	}
	if got := (aai.Written{"/a": "1"}).Intend([]aai.Document{{Path: "/a"}, {Path: "/b"}}); !cmp.Equal(got, aai.Written{"/a": "1", "/b": ""}) {
		t.Errorf("got %v, want what is known to stay", got)
	}
}

// TestTransactions writes many instances, during an outage.
func TestTransactions(t *testing.T) {
	t.Parallel()
	const instances = 100
	v := newInventory(t, 0)
	written := make([]aai.Written, instances)
	var transactions int
	writeAll := func() (failed int) {
		for i := range instances {
			in := instance()
			in.ID = fmt.Sprint("i", i)
			in.Pods[0].UID = fmt.Sprint("p", i)
			in.Pods[0].Interfaces[1].NetworkID = ""
			r, err := v.writer.Write(t.Context(), all(in), written[i], false)
			written[i] = r.Written
			transactions += r.Transactions
			if err != nil {
				failed++
			}
		}
		return failed
	}
	v.simulator.Script(simulator.Fault{Path: bulkPath, Times: 50}, // which does nothing
		simulator.Fault{Status: 500, Times: 30})
	if failed := writeAll(); failed == 0 || failed > 30 {
		t.Errorf("%d writes failed during an outage, want some", failed)
	}
	v.simulator.Repair()
	if failed := writeAll(); failed != 0 {
		t.Errorf("%d writes failed after the outage", failed)
	}
	if transactions != instances {
		t.Errorf("%d transactions for %d instances, want one each", transactions, instances)
	}
	if got := len(v.read(tenantPath + "/k8s-resources")["k8s-resource"].([]any)); got != 2*instances {
		t.Errorf("A&AI has %d resources, want %d", got, 2*instances)
	}
}

// TestStrays looks for objects of the service that nothing names any longer.
func TestStrays(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	const resources = tenantPath + "/k8s-resources"
	body := func(owner string) string {
		return `{"name":"","group":"","version":"","kind":"","namespace":"","selflink":"","data-owner":"` + owner + `"}`
	}
	for i := range 205 {
		v.as("PUT", fmt.Sprint(resources, "/k8s-resource/a", i), body("k8splugin"))
	}
	v.as("PUT", resources+"/k8s-resource/b", body("CnfAdapter"))
	place := instance().Place
	r := v.write(slices.Concat([]aai.Document{scheme.Network(network())}, all(instance())), nil, false)
	known := func(path string) bool { _, ok := r.Written[path]; return ok }
	v.requests()

	strays, err := v.writer.Strays(t.Context(), place, known)
	if err != nil || len(strays) != 205 {
		t.Fatalf("got %d strays, %v; want those of a lost record", len(strays), err)
	}
	if diff := cmp.Diff([]string{"GET 0 200", "GET 0 200", "GET 0 200", "GET 0 200"}, v.requests()); diff != "" {
		t.Errorf("the lists are read in pages (-want +got):\n%s", diff)
	}
	v.write(nil, strays, false)
	if strays, err = v.writer.Strays(t.Context(), place, known); err != nil || len(strays) != 0 {
		t.Errorf("got %d strays, %v after their deletion", len(strays), err)
	}
	if v.read(resources+"/k8s-resource/b") == nil || len(v.read(resources)["k8s-resource"].([]any)) != 3 {
		t.Error("an object that is known, or belongs to others, was deleted")
	}
	v.write(nil, r.Written, false)
	if strays, err = v.writer.Strays(t.Context(), place, known); err != nil || len(strays) != 0 {
		t.Errorf("got %d strays, %v in empty collections", len(strays), err)
	}
	if strays, err = v.writer.StrayNetworks(t.Context(), func(string) bool { return false }); err != nil || len(strays) != 0 {
		t.Errorf("got %d networks, %v; want none", len(strays), err)
	}
	v.write([]aai.Document{scheme.Network(network())}, nil, false)
	if strays, err = v.writer.StrayNetworks(t.Context(), func(string) bool { return false }); err != nil || len(strays) != 1 {
		t.Errorf("got %d networks, %v; want one", len(strays), err)
	}
	v.simulator.Script(simulator.Fault{Status: 503, Times: -1})
	if _, err = v.writer.Strays(t.Context(), place, known); err == nil {
		t.Error("without a response, strays are unknown")
	}
}

// TestNewTenants has a writer create the tenant that its objects need.
func TestNewTenants(t *testing.T) {
	t.Parallel()
	missing := func(path string) map[string]any { return map[string]any{"missing": path} }
	cases := map[string]struct {
		reason  string
		prepare func(v *inventory)
		want    map[string]any // of the tenant, or what is missing
		fails   bool
	}{
		"created": {"a missing tenant is created", func(*inventory) {}, map[string]any{"tenant-id": "t1", "tenant-name": "t1", "data-owner": "k8splugin"}, false},
		"raced": {"another client creates it at the same time", func(v *inventory) {
			v.simulator.Script(simulator.Fault{Path: bulkPath, Code: 6114}, simulator.Fault{Path: bulkPath, Code: 6135, Before: func() { v.as("PUT", tenantPath, `{"tenant-name":"theirs"}`) }})
		}, map[string]any{"tenant-id": "t1", "tenant-name": "theirs", "data-owner": nil}, false},
		"no region": {"the cloud region is missing, too", func(v *inventory) { v.delete(regionPath) }, missing(tenantPath), false},
		"rejected": {"A&AI does not let the service create it", func(v *inventory) {
			v.simulator.Script(simulator.Fault{Path: bulkPath, Code: 6114}, simulator.Fault{Path: bulkPath, Code: 3000})
		}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, 0)
			v.delete(tenantPath)
			tc.prepare(v)
			r, err := v.writer.WithTenants().Write(t.Context(), scheme.Resources(instance()), nil, true)
			got := v.read(tenantPath)
			if tc.fails {
				if err == nil || got != nil {
					t.Errorf("%s: %+v, %v, %v", tc.reason, r, err, got)
				}
				return
			}
			for name, want := range tc.want {
				have := got[name]
				if name == "missing" && len(r.Missing) > 0 {
					have = r.Missing[0]
				}
				if have != want || err != nil {
					t.Errorf("%s: %s is %v, want %v (%+v, %v)", tc.reason, name, have, want, r, err)
				}
			}
		})
	}
}
