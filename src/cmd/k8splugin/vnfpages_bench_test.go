package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// BenchmarkVNFPages requests pages of 100 VNFs and occurrences of SOL003 from the embedded,
// encrypted store, with few records and with many. The goal is at most 100 ms.
func BenchmarkVNFPages(b *testing.B) {
	for _, records := range []int{100, 50_000} {
		handler := vnfBenchmark(b, records)
		last := fmt.Sprintf("v%06d", records-1)
		for name, path := range map[string]string{
			"vnfs":              "/vnf_instances",
			"vnfs/fields":       "/vnf_instances?all_fields",
			"vnfs/name":         "/vnf_instances?filter=(eq,vnfInstanceName," + last + ")",
			"vnfs/state":        "/vnf_instances?filter=(eq,instantiationState,NOT_INSTANTIATED)",
			"vnfs/none":         "/vnf_instances?filter=(eq,vnfdId,none)",
			"occurrences":       "/vnf_lcm_op_occs",
			"occurrences/vnf":   "/vnf_lcm_op_occs?filter=(eq,vnfInstanceId," + last + ")",
			"occurrences/state": "/vnf_lcm_op_occs?filter=(eq,operationState,FAILED_TEMP)",
			"occurrences/none":  "/vnf_lcm_op_occs?filter=(eq,operationState,PROCESSING)",
			"occurrences/last":  "/vnf_lcm_op_occs?nextpage_opaque_marker=" + fmt.Sprintf("o%06d", records-100),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, records), func(b *testing.B) {
				for b.Loop() {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/vnflcm/v2"+path, nil)
					r.Header.Set("Version", "2.0.0")
					got := httptest.NewRecorder()
					if handler.ServeHTTP(got, r); got.Code != http.StatusOK {
						b.Fatalf("%s: %d %s", path, got.Code, got.Body)
					}
				}
			})
		}
	}
}

// vnfBenchmark returns a service with so many VNFs, each with an occurrence. Every 500th
// occurrence has failed temporarily.
func vnfBenchmark(b *testing.B, records int) http.Handler {
	b.Helper()
	cfg := Config{Store: "etcd", Data: filepath.Join(b.TempDir(), "data"), LogLevel: "error", LogFormat: "text", Workers: 1, MaxPackage: 1 << 20, Retention: time.Hour}
	return serviceWith(b, cfg, func(kv store.KV) {
		vnfs := store.NewTable[nf.VNF](kv, "vnfs/", "VNF")
		occurrences := store.NewTable[nf.Occurrence](kv, "occurrences/", "occurrence")
		now := time.Now().UTC()
		var ops []store.Op
		for n := range records {
			id := fmt.Sprintf("v%06d", n)
			o := nf.Occurrence{
				ID: fmt.Sprintf("o%06d", n), VNF: id, Operation: nf.OccurrenceInstantiate, State: nf.OccurrenceCompleted, Entered: now, Started: now,
				Params: []byte(`{"flavourId": "simple"}`), Attempts: []string{"a"}, CanUndo: true,
			}
			v := nf.VNF{ID: id, Name: id, Package: "p", VNFD: nf.VNFD{ID: "vnfd", Provider: "Example"}, Created: now, Updated: now}
			v.Instantiated = &nf.InstantiatedVNF{Flavor: "simple", Region: "east", Namespace: "default", VNFCs: make([]nf.VNFC, 4)}
			if n%500 == 0 {
				o.State, o.Failure, v.Occurrence, v.Instantiated = nf.OccurrenceFailedTemp, &nf.Failure{Kind: nf.Failed, Message: "it failed"}, o.ID, nil
			}
			first, err := vnfs.InsertOp(v.ID, v)
			second, err2 := occurrences.InsertOp(o.ID, o)
			if err != nil || err2 != nil {
				b.Fatal(err, err2)
			}
			if ops = append(ops, first, second); len(ops) >= 100 || n == records-1 {
				if _, err := store.Write(b.Context(), kv, ops); err != nil {
					b.Fatal(err)
				}
				ops = nil
			}
		}
	}).handler
}
