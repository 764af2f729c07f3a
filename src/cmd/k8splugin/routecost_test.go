package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// readCounter counts the reads of requests from the store. It ignores the reads of the
// service itself, which are without an identity.
type readCounter struct {
	store.KV

	mu    sync.Mutex
	count readCount
}

// readCount is the number of requests to the store, and of the records in their
// responses.
type readCount struct{ Requests, Records int }

// of returns the counter as the decorator of a store.
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

// multiply copies all records that belong to one object only, under new ids.
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
		own := slices.DeleteFunc(slices.Clone(records), func(e store.Entry) bool {
			return strings.Contains(e.Key, id+"-") || op != "" && strings.Contains(e.Key, op+"-") || !strings.Contains(e.Key, id) && (op == "" || !strings.Contains(e.Key, op))
		})
		for n := from; n < to; n++ {
			names := []string{id, fmt.Sprintf("%s-%d", id, n)}
			if op != "" {
				names = append(names, op, fmt.Sprintf("%s-%d", op, n))
			}
			other := strings.NewReplacer(names...)
			for _, e := range own {
				copied++
				if _, err := w.db.kv.Put(w.t.Context(), other.Replace(e.Key), []byte(other.Replace(string(e.Value))), store.Absent); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
	if copied < 10*(to-from) {
		w.t.Fatalf("%d instances have only %d records", to-from, copied)
	}
}

// costs returns the reads of each request by each identity.
func (w *accessWorld) costs(callers []string) map[string]readCount {
	w.t.Helper()
	out := map[string]readCount{}
	for route, rules := range routeAccess() {
		for _, rule := range rules {
			method, path := rule.target(route)
			if method != http.MethodGet && !strings.Contains(rule.query, "dry_run=true") {
				continue
			}
			if path == "/v1/audit" {
				continue // each request adds an entry
			}
			for _, who := range callers {
				for _, o := range slices.Concat(w.native, w.onap) {
					filled := o.filled(path + rule.query)
					if strings.Contains(filled, "{") || !rule.sees(who, o.scope) || !rule.may(who, o.scope) {
						continue // the path belongs to the other API, or the request is denied
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
