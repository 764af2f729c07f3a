package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// publicModules is the folder of the module that names where public charts are.
const publicModules = "../../../tools/charts"

// publicChart is a chart in a module of tools/charts.
type publicChart struct {
	module, folder string
	metadata       string // added to its Chart.yaml
	library        string // a folder of the module that becomes a subchart
	values         string // the least that it renders with, as for helm --set
	but            string // what is otherwise when everything is switched on
	fails          string // what both sides say then
}

func publicCharts() map[string]publicChart {
	return map[string]publicChart{
		"alloy":                {module: "github.com/grafana/alloy", folder: "operations/helm/charts/alloy", but: "controller.type=statefulset,controller.podDisruptionBudget.minAvailable=1,alloy.resources.requests.cpu=1,alloy.resources.requests.memory=1"},
		"cert-manager":         {module: "github.com/cert-manager/cert-manager", folder: "deploy/charts/cert-manager", metadata: "version: v1.16.2\nappVersion: v1.16.2\n", but: "prometheus.podmonitor.enabled=false"},
		"cilium":               {module: "github.com/cilium/cilium", folder: "install/kubernetes/cilium", but: "hubble.ui.standalone.enabled=false,disableEndpointCRD=false"},
		"crossplane":           {module: "github.com/crossplane/crossplane", folder: "cluster/charts/crossplane"},
		"dapr":                 {module: "github.com/dapr/dapr", folder: "charts/dapr", fails: "is not YAML"},
		"external-dns":         {module: "sigs.k8s.io/external-dns", folder: "charts/external-dns", but: "secretConfiguration.mountPath=/x"},
		"external-secrets":     {module: "github.com/external-secrets/external-secrets", folder: "deploy/charts/external-secrets"},
		"flux":                 {module: "github.com/fluxcd/flux", folder: "chart/flux"},
		"gatekeeper":           {module: "github.com/open-policy-agent/gatekeeper/v3", folder: "charts/gatekeeper"},
		"kueue":                {module: "sigs.k8s.io/kueue", folder: "charts/kueue"},
		"kyverno":              {module: "github.com/kyverno/kyverno", folder: "charts/kyverno", but: "templating.version=v1"},
		"kyverno-policies":     {module: "github.com/kyverno/kyverno", folder: "charts/kyverno-policies"},
		"loki":                 {module: "github.com/grafana/loki/v3", folder: "production/helm/loki", values: "loki.useTestSchema=true,loki.storage.bucketNames.chunks=a,loki.storage.bucketNames.ruler=b,loki.storage.bucketNames.admin=c", but: "minio.enabled=false,gateway.basicAuth.enabled=false"},
		"metallb":              {module: "go.universe.tf/metallb", folder: "charts/metallb", but: "frrk8s.enabled=false,frrk8s.external=false,prometheus.podMonitor.enabled=false,prometheus.serviceAccount=a,prometheus.namespace=b"},
		"metrics-server":       {module: "sigs.k8s.io/metrics-server", folder: "charts/metrics-server"},
		"nginx-ingress":        {module: "github.com/nginxinc/kubernetes-ingress", folder: "deployments/helm-chart"},
		"nfd":                  {module: "sigs.k8s.io/node-feature-discovery", folder: "deployment/helm/node-feature-discovery"},
		"postgres-operator":    {module: "github.com/zalando/postgres-operator", folder: "charts/postgres-operator"},
		"postgres-operator-ui": {module: "github.com/zalando/postgres-operator", folder: "charts/postgres-operator-ui"},
		"rook-ceph":            {module: "github.com/rook/rook", folder: "deploy/charts/rook-ceph", library: "deploy/charts/library"},
		"rook-ceph-cluster":    {module: "github.com/rook/rook", folder: "deploy/charts/rook-ceph-cluster", library: "deploy/charts/library"},
		"sealed-secrets":       {module: "github.com/bitnami-labs/sealed-secrets", folder: "helm/sealed-secrets"},
		"secrets-store":        {module: "sigs.k8s.io/secrets-store-csi-driver", folder: "charts/secrets-store-csi-driver"},
		"sriov":                {module: "github.com/k8snetworkplumbingwg/sriov-network-operator", folder: "deployment/sriov-network-operator-chart"},
		"trust-manager":        {module: "github.com/cert-manager/trust-manager", folder: "deploy/charts/trust-manager", but: "app.webhook.tls.helmCert.enabled=false"},
		"volcano":              {module: "volcano.sh/volcano", folder: "installer/helm/chart/volcano"},
	}
}

// fetch returns the folders of the modules of tools/charts, which are fetched if
// they are not there.
func fetch(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(publicModules, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) []byte {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = dir
		out, err := command.Output()
		if err != nil {
			t.Fatalf("the charts cannot be had: go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	var listed struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(run("mod", "edit", "-json"), &listed); err != nil {
		t.Fatal(err)
	}
	download := []string{"mod", "download", "-json"}
	for _, m := range listed.Require {
		download = append(download, m.Path+"@"+m.Version)
	}
	folders := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(run(download...))); ; {
		var m struct{ Path, Dir string }
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || m.Dir == "" {
			t.Fatalf("module %s: %v", m.Path, err)
		}
		folders[m.Path] = m.Dir
	}
	before, _ := os.ReadFile(filepath.Join(publicModules, "go.sum"))
	if after, err := os.ReadFile(filepath.Join(dir, "go.sum")); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("go.sum lacks a module: %v", err)
	}
	return folders
}

// pack returns a chart as helm package makes it. What it depends on elsewhere is
// taken out: Helm wants all of it to be there, whether or not it is enabled.
func (p publicChart) pack(t *testing.T, root string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(p.folder))
	copied := func(from, to string) {
		if err := os.CopyFS(to, os.DirFS(filepath.Join(root, from))); err != nil {
			t.Fatal(err)
		}
	}
	copied(p.folder, dir)
	if p.library != "" {
		copied(p.library, filepath.Join(dir, "charts", filepath.Base(p.library)))
	}
	written, err := os.ReadFile(filepath.Join(dir, chartFile))
	if err != nil {
		written, err = os.ReadFile(filepath.Join(dir, "Chart.template.yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	metadata := map[string]any{}
	if err := yaml.Unmarshal(append(written, "\n"+p.metadata...), &metadata); err != nil {
		t.Fatal(err)
	}
	dependencies, _ := metadata["dependencies"].([]any)
	metadata["dependencies"] = slices.DeleteFunc(dependencies, func(d any) bool {
		name, _ := d.(map[string]any)["name"].(string)
		_, err := os.Stat(filepath.Join(dir, "charts", name))
		return err != nil
	})
	if written, err = yaml.Marshal(metadata); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.RemoveAll(filepath.Join(dir, chartFile)), os.WriteFile(filepath.Join(dir, chartFile), written, 0o600)); err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := render.Files{}
	for _, f := range c.Raw {
		files[filepath.Base(dir)+"/"+f.Name] = f.Data
	}
	return packaged(files)
}

// enabled returns values in which all that can be switched on is.
func enabled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = enabled(inner)
		}
		return out
	case bool:
		return true
	}
	return v
}

// set lays settings over values.
func set(t *testing.T, values map[string]any, settings ...string) map[string]any {
	t.Helper()
	for _, setting := range settings {
		if err := strvals.ParseInto(setting, values); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// TestPublicChartsLikeHelm compares what we make of public charts with what Helm
// makes of them: with their own values, and with everything switched on.
func TestPublicChartsLikeHelm(t *testing.T) {
	t.Parallel()
	folders := fetch(t)
	charts := publicCharts()
	for module := range folders {
		if !slices.ContainsFunc(slices.Collect(maps.Values(charts)), func(p publicChart) bool { return p.module == module }) {
			t.Errorf("no chart of %s is tested", module)
		}
	}
	for name, p := range charts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := p.pack(t, folders[p.module])
			likeHelmTwice(t, archive, set(t, map[string]any{}, p.values), "")
			c, err := loader.LoadArchive(bytes.NewReader(archive))
			if err != nil {
				t.Fatal(err)
			}
			whole, _ := enabled(c.Values).(map[string]any)
			likeHelmTwice(t, archive, set(t, whole, p.values, p.but), p.fails)
		})
	}
}

// likeHelmTwice lets Helm render a chart twice: what differs then, is random.
func likeHelmTwice(t *testing.T, archive []byte, values map[string]any, fails string) {
	t.Helper()
	copied := func() map[string]any {
		v, _ := normalize(values).(map[string]any)
		if v == nil {
			v = map[string]any{}
		}
		return v
	}
	want, wantErr := byHelm(archive, copied())
	again, _ := byHelm(archive, copied())
	got, err := byUs(t.Context(), archive, copied())
	if (wantErr == nil) != (err == nil) || (wantErr != nil) != (fails != "") || err != nil && !strings.Contains(err.Error(), fails) {
		t.Fatalf("Helm fails with %v, and we with %v; want %q", wantErr, err, fails)
	}
	if err != nil {
		return
	}
	if diff := differences(want, &again, got); diff != "" || len(want.objects) == 0 {
		t.Errorf("of %d objects: %s", len(want.objects), diff)
	}
}
