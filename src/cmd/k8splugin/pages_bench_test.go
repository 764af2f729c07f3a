package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// benchmarkRecords is the number of instances, and of operations and audit entries.
const benchmarkRecords = 50_000

// BenchmarkPages requests pages of 100 items from the embedded, encrypted store.
func BenchmarkPages(b *testing.B) {
	parts := benchmarkService(b)
	for name, path := range map[string]string{
		"instances":            "/v1/vnf_instances",
		"instances/marker":     "/v1/vnf_instances?marker=i040000",
		"instances/namespace":  "/v1/vnf_instances?namespace=ns-7",
		"instances/name":       "/v1/vnf_instances?vnf_instance_name=vnf-49999",
		"instances/none":       "/v1/vnf_instances?label=tier%3Dabsent",
		"operations":           "/v1/operations",
		"operations/subject":   "/v1/operations?vnf_id=i049999",
		"operations/state":     "/v1/operations?state=failed",
		"operations/none":      "/v1/operations?project=absent",
		"audit":                "/v1/audit",
		"audit/identity":       "/v1/audit?identity=ann",
		"audit/none":           "/v1/audit?identity=absent",
		"audit/identity-since": "/v1/audit?identity=ann&since=2020-01-01T00:00:00Z",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := httptest.NewRecorder()
				if parts.handler.ServeHTTP(got, httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)); got.Code != http.StatusOK {
					b.Fatalf("%s: %d %s", path, got.Code, got.Body)
				}
			}
		})
	}
}

// benchmarkService returns a service with many records and an index of them. It runs no
// operations.
func benchmarkService(b *testing.B) *service {
	b.Helper()
	cfg := Config{Store: "etcd", Data: filepath.Join(b.TempDir(), "data"), LogLevel: "error", LogFormat: "text", Workers: 1, MaxPackage: 1 << 20, Retention: time.Hour}
	before, begun := heaptest.InUse(), time.Now()
	parts := serviceWith(b, cfg, func(kv store.KV) {
		storeRecords(b, kv)
		before, begun = heaptest.InUse(), time.Now()
	})
	b.Logf("the index of 3 × %d records was filled in %s, and has %d MiB", benchmarkRecords, time.Since(begun).Round(time.Millisecond), (heaptest.InUse()-before)>>20)
	return parts
}

// serviceWith returns a service with the records that fill stores, and an index of them.
func serviceWith(b *testing.B, cfg Config, fill func(store.KV)) *service {
	b.Helper()
	obs, err := cfg.observability(b.Context(), process{stderr: b.Output()})
	if err != nil {
		b.Fatal(err)
	}
	db, err := openSecureStore(b.Context(), cfg, obs, nil)
	if err != nil {
		b.Fatal(err)
	}
	parts, err := assemble(b.Context(), cfg, db, obs)
	if err != nil {
		b.Fatal(err)
	}
	fill(db.kv)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- parts.index.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, parts.audit.Close(), db.Close()); err != nil {
			b.Error(err)
		}
	})
	untilIndexed(b, parts)
	return parts
}

// storeRecords stores the records that the lists have, as the engine stores them.
func storeRecords(b *testing.B, kv store.KV) {
	b.Helper()
	instances := store.NewTable[nf.Instance](kv, "instances/", "VNF instance")
	operations := store.NewTable[nf.Operation](kv, "operations/", "operation")
	entries := store.NewTable[nf.AuditEntry](kv, "audit/", "audit entry")
	now := time.Now().UTC()
	var ops []store.Op
	for n := range benchmarkRecords {
		in := benchmarkInstance(n)
		state := nf.Succeeded
		if n%500 == 0 {
			state = nf.OperationFailed
		}
		op := nf.Operation{
			ID: fmt.Sprintf("o%06d", n), Subject: nf.Subject{Kind: nf.InstanceSubject, ID: in.ID}, Region: in.Region, Verb: nf.Instantiate, State: state,
			Accepted: now, Steps: make([]nf.Step, 8),
		}
		e := nf.AuditEntry{
			ID: fmt.Sprintf("e%06d", n), Phase: nf.AuditOutcome, Time: now.Add(-time.Duration(n) * time.Second), Identity: []string{"ann", "so", "ci"}[n%3],
			Kind: "user", Method: http.MethodPost, Route: "/v1/vnf_instances", Region: in.Region, Project: nf.DefaultProject, Outcome: nf.AuditDone,
		}
		first, err := instances.InsertOp(in.ID, in)
		second, err2 := operations.InsertOp(op.ID, op)
		third, err3 := entries.InsertOp(e.Place(), e)
		if err != nil || err2 != nil || err3 != nil {
			b.Fatal(err, err2, err3)
		}
		if ops = append(ops, first, second, third); len(ops) >= 99 || n == benchmarkRecords-1 {
			if _, err := store.Write(b.Context(), kv, ops); err != nil {
				b.Fatal(err)
			}
			ops = nil
		}
	}
}

// benchmarkInstance returns an instance with four objects.
func benchmarkInstance(n int) nf.Instance {
	in := nf.Instance{
		ID: fmt.Sprintf("i%06d", n), Name: fmt.Sprintf("vnf-%d", n), Region: fmt.Sprintf("region-%d", n%100), Namespace: fmt.Sprintf("ns-%d", n%100),
		Package: "firewall", State: nf.Ready, Labels: map[string]string{"tier": "gold"}, Revision: 1, Newest: 1,
		Inputs: nf.Inputs{Parameters: map[string]any{"replicas": 2, "image": "registry.example.org/firewall:1.2.3"}},
	}
	for k := range 4 {
		in.Inventory = append(in.Inventory, nf.Item{Ref: nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: in.Namespace, Name: fmt.Sprintf("%s-%d", in.ID, k)}})
	}
	return in
}
