package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// readCounter counts what requests read from the store. It passes over the reads of
// the service itself, which have no identity.
type readCounter struct {
	store.KV

	mu    sync.Mutex
	count readCount
}

// readCount is the number of requests to the store, and of the records in their
// answers.
type readCount struct{ Requests, Records int }

// of makes the counter the decorator of a store.
func (c *readCounter) of(kv store.KV) store.KV {
	c.KV = kv
	return c
}

func (c *readCounter) add(ctx context.Context, more readCount) {
	if _, asked := nf.IdentityOf(ctx); !asked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Requests += more.Requests
	c.count.Records += more.Records
}

// take returns the reads since the last call.
func (c *readCounter) take() readCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.count
	c.count = readCount{}
	return taken
}

func (c *readCounter) Get(ctx context.Context, key string) (store.Entry, error) {
	c.add(ctx, readCount{1, 1})
	return c.KV.Get(ctx, key)
}

func (c *readCounter) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		c.add(ctx, readCount{Requests: 1})
		for e, err := range c.KV.List(ctx, prefix, start) {
			c.add(ctx, readCount{Records: 1})
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestCostOfHiddenInstances makes the requests of both APIs that change nothing, as
// each identity that may read some instances and not others, on what it may see. With
// 200 hidden instances, they read from the store what they read with 10.
func TestCostOfHiddenInstances(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	hidden := map[string]accessObject{"vnf_id": w.native[1], "instance": w.onap[0]} // of the project b, and of ONAP's
	askers := slices.DeleteFunc(accesstest.People(), func(who string) bool {
		return !accesstest.May(who, nf.ReadInstance, w.native[0].scope) || slices.ContainsFunc(slices.Collect(maps.Values(hidden)), func(o accessObject) bool {
			return accesstest.May(who, nf.ReadInstance, o.scope)
		})
	})
	if len(askers) < 5 {
		t.Fatalf("only %v see some of the instances", askers)
	}
	w.multiply(hidden, 0, 10)
	few := w.costs(askers)
	w.multiply(hidden, 10, 200)
	if diff := cmp.Diff(few, w.costs(askers)); diff != "" {
		t.Errorf("the reads of each request (-with 10 hidden instances +with 200):\n%s", diff)
	}
	if len(few) < 100 {
		t.Errorf("only %d requests were made", len(few))
	}
}

// multiply copies all records that are of an object alone, under other ids.
func (w *accessWorld) multiply(objects map[string]accessObject, from, to int) {
	w.t.Helper()
	var records []store.Entry
	for e, err := range w.db.kv.List(w.t.Context(), "", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if !slices.ContainsFunc([]string{"audit/", "claims/", "notifications/", "blobs/"}, func(table string) bool { return strings.HasPrefix(e.Key, table) }) {
			records = append(records, e)
		}
	}
	copied := 0
	for name, o := range objects {
		id, op := o.vars[name], o.vars["operation_id"]
		for n := from; n < to; n++ {
			names := []string{id, fmt.Sprintf("%s-%d", id, n)}
			if op != "" {
				names = append(names, op, fmt.Sprintf("%s-%d", op, n))
			}
			other := strings.NewReplacer(names...)
			for _, e := range records {
				if key := other.Replace(e.Key); key != e.Key && !strings.Contains(e.Key, id+"-") {
					copied++
					if _, err := w.db.kv.Put(w.t.Context(), key, []byte(other.Replace(string(e.Value))), store.Absent); err != nil {
						w.t.Fatal(err)
					}
				}
			}
		}
	}
	if copied < 10*(to-from) {
		w.t.Fatalf("%d instances have only %d records", to-from, copied)
	}
}

// costs returns the reads of each request by each identity.
func (w *accessWorld) costs(askers []string) map[string]readCount {
	w.t.Helper()
	out := map[string]readCount{}
	for route, rules := range routeAccess() {
		for _, rule := range rules {
			method, path := rule.target(route)
			if method != http.MethodGet && !strings.Contains(rule.query, "dry_run=true") {
				continue
			}
			if path == "/v1/audit" {
				continue // each request adds to it
			}
			for _, who := range askers {
				for _, o := range slices.Concat(w.native, w.onap) {
					filled := o.filled(path + rule.query)
					if strings.Contains(filled, "{") || !rule.sees(who, o.scope) || !rule.may(who, o.scope) {
						continue // it is of the other API, or denied
					}
					w.reads.take()
					w.ask(who, route, rule, o)
					out[who+": "+method+" "+filled] = w.reads.take()
				}
			}
		}
	}
	return out
}
