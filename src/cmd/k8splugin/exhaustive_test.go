//go:build !race

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnffm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpkgm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfpm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfsubscription"
)

// The tests of this file make thousands of requests, one after another. With the race
// detector they take many times as long, and it sees the same code in other tests.

// TestEveryRouteAsksWhoMay makes every request of each API on objects of each
// project in each region, as every identity that may not make it, and as every other
// identity if it changes nothing. To an identity that may not see an object, the answer
// is that for an object which does not exist. No answer names what its reader may
// not see, and nothing in the store changes. A route that is not in the table fails.
func TestEveryRouteAsksWhoMay(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	table, tried := routeAccess(), 0
	for api, routes := range map[string][]string{
		"native": routesOf(t, &native.API{}), "onap": routesOf(t, &onap.API{}), "tacker": routesOf(t, &tacker.API{}), "vnflcm": routesOf(t, &vnflcm.API{}),
		"etsi": slices.Concat(routesOf(t, &vnfpkgm.API{}), routesOf(t, &vnfsubscription.API{}), routesOf(t, &vnffm.API{}), routesOf(t, &vnfpm.API{})),
	} {
		objects := map[string][]accessObject{"native": w.native, "onap": w.onap, "tacker": w.native, "etsi": w.native, "vnflcm": w.native}[api]
		for _, route := range routes {
			rules, known := table[route]
			if !known {
				t.Errorf("%s is in no table of who may use it", route)
			}
			delete(table, route)
			for _, rule := range rules {
				for _, who := range accesstest.People() {
					for _, o := range objects {
						tried += w.denied(who, route, rule, o)
					}
				}
				w.unchanged(route + rule.query)
				if rule.idle {
					w.refused(route, rule, objects)
				}
			}
		}
	}
	for route := range table {
		t.Errorf("%s is in the table, and no route", route)
	}
	w.auditIsSilent()
	if tried < 3000 {
		t.Errorf("only %d requests were made", tried)
	}
}

// TestCostOfHiddenInstances makes all requests of both APIs that do not change
// anything, as each identity that may read only some of the instances, for the objects
// that it may see. With 200 hidden instances, a request must cost as many reads from
// the store as with 10.
func TestCostOfHiddenInstances(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	hidden := map[string]accessObject{"vnf_id": w.native[1], "instance": w.onap[0]} // of project b, and of ONAP's API
	callers := slices.DeleteFunc(accesstest.People(), func(who string) bool {
		return !accesstest.May(who, nf.ReadInstance, w.native[0].scope) || slices.ContainsFunc(slices.Collect(maps.Values(hidden)), func(o accessObject) bool {
			return accesstest.May(who, nf.ReadInstance, o.scope)
		})
	})
	if len(callers) < 5 {
		t.Fatalf("only %v see some of the instances", callers)
	}
	w.multiply(hidden, 0, 10)
	few := w.costs(callers)
	w.multiply(hidden, 10, 200)
	if diff := cmp.Diff(few, w.costs(callers)); diff != "" {
		t.Errorf("the reads of each request (-with 10 hidden instances +with 200):\n%s", diff)
	}
	if len(few) < 100 {
		t.Errorf("only %d requests were made", len(few))
	}
}

// TestCostOfPages reads the first pages of each list, as callers that see all instances
// and as callers that see those of a project or a region. With 3,000 instances,
// operations and packages, a page must cost as many reads from the store as with 300, also
// if a filter selects few of them or none.
func TestCostOfPages(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	few := w.pageCosts(300)
	if diff := cmp.Diff(few, w.pageCosts(3000)); diff != "" {
		t.Errorf("the reads of each page (-with 300 records +with 3000):\n%s", diff)
	}
	for page, cost := range few {
		if cost.Records > 160 { // the item, its entry in an index, and the first one of each scope
			t.Errorf("%s reads %d records", page, cost.Records)
		}
	}
}
