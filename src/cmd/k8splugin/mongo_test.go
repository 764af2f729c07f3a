package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo/mongotest"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// TestServiceOnMongoDB lets one replica finish the operations of instances' whole
// lives, four each, with its records behind the MongoDB wire protocol. How many
// lives is said by K8SPLUGIN_TEST_LIVES: 50 make the 200 operations of
// docs/reliability.md. FerretDB stands in for the database, over
// one connection, because its updates are not atomic when they
// are concurrent.
func TestServiceOnMongoDB(t *testing.T) {
	dir, ns := t.TempDir(), clustertest.Namespace(t)
	keys := filepath.Join(dir, "keys")
	ring, err := seal.Generate()
	if err == nil {
		err = ring.Save(t.Context(), keys, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := serveProgram(t, dir, "--store", mongotest.Start(t)+"?maxPoolSize=1", "--encryption-key-file", keys, "--lease-duration", "60s")
	p.want(http.StatusCreated, p.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	p.upload("small", map[string]string{
		"metadata.yaml": "variables:\n  size: {type: string, default: s}\nresources:\n- configmap: [map.yaml]\n",
		"map.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-$vnf_name\ndata:\n  size: $size\n",
	})
	var clients errgroup.Group
	clients.SetLimit(8)
	lives := 5
	if text := os.Getenv("K8SPLUGIN_TEST_LIVES"); text != "" {
		if lives, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range lives {
		clients.Go(func() error { return p.life(fmt.Sprint("vnf", i), ns) })
	}
	if err := clients.Wait(); err != nil {
		t.Fatal(err)
	}
	ended := 0
	for path := "/v1/operations?limit=100"; path != ""; {
		page := p.want(http.StatusOK, p.do("GET", path, nil))
		for _, op := range page.field(t, "operations").([]any) {
			if state := op.(map[string]any)["state"]; state != "succeeded" {
				t.Errorf("operation %v", op)
			}
			ended++
		}
		var list struct{ Next string }
		if err := json.Unmarshal(page.body, &list); err != nil {
			t.Fatal(err)
		}
		if path = ""; list.Next != "" {
			path = "/v1/operations?limit=100&marker=" + url.QueryEscape(list.Next)
		}
	}
	if ended != 4*lives {
		t.Errorf("%d operations have ended, want %d", ended, 4*lives)
	}
}

// life brings an instance up, changes it, takes the change back, and removes it.
func (p *program) life(name, ns string) error {
	made := p.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "small", "namespace": ns, "vnf_instance_name": name})
	if made.status != http.StatusCreated {
		return fmt.Errorf("create %s: %d %s", name, made.status, made.body)
	}
	path := "/v1/vnf_instances/" + made.text(p.t, "vnf_id")
	p.operation(made.text(p.t, "operation_id"))
	changed := p.do("PATCH", path, map[string]any{"parameters": map[string]any{"size": "xl"}})
	if changed.status != http.StatusOK {
		return fmt.Errorf("change %s: %d %s", name, changed.status, changed.body)
	}
	p.operation(changed.text(p.t, "operation_id"))
	back := p.do("POST", path+"/rollback", map[string]any{"revision": 1})
	if back.status != http.StatusOK {
		return fmt.Errorf("roll back %s: %d %s", name, back.status, back.body)
	}
	p.operation(back.text(p.t, "operation_id"))
	if gone := p.do("DELETE", path, nil); gone.status != http.StatusNoContent {
		return fmt.Errorf("delete %s: %d %s", name, gone.status, gone.body)
	}
	return nil
}
