package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

// TestSDCPackages creates packages of charts that SDC has.
func TestSDCPackages(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcOnDemand)
	for name, chart := range map[string][]byte{"vfw": designedChart("one"), "bad": []byte("no archive")} {
		if _, err := d.Put(designed(name, chart)); err != nil {
			t.Fatal(err)
		}
	}
	create := func(of map[string]any) answer {
		return d.do("POST", "/v1/packages", map[string]any{"source": map[string]any{"sdc": of}})
	}
	made := d.want(http.StatusCreated, create(map[string]any{"service_uuid": "vfw-service", "resource_instance": "vf 0"}))
	d.has("the package is the chart", made, "name", any("fw"))
	d.has("and says where it is from", made, "source", any("/sdc/v1/catalog/services/vfw-service/resourceInstances/vf0/artifacts/vfw-chart"))
	d.want(http.StatusNotFound, create(map[string]any{"service_uuid": "other"}))
	d.want(http.StatusNotFound, create(map[string]any{"service_uuid": "vfw-service", "artifact": "other.tgz"}))
	d.want(http.StatusBadRequest, create(map[string]any{"service_uuid": "bad-service"}))
	d.Script(simulator.Fault{Path: "vfw-chart", Damage: true}, simulator.Fault{Path: "vfw-chart", Redirect: "http://169.254.169.254"}, simulator.Fault{Path: "vfw-chart", Longer: 8 << 20})
	for _, status := range []int{http.StatusBadGateway, http.StatusBadGateway, http.StatusRequestEntityTooLarge} {
		d.want(status, create(map[string]any{"service_uuid": "vfw-service"}))
	}
	if all := d.do("GET", "/v1/packages", nil); len(all.field(t, "packages").([]any)) != 1 {
		t.Errorf("nothing is stored of what is wrong: %s", all.body)
	}

	csar := designed("csar", rendertest.Zip(csartest.Files(map[string]string{"Files/kubernetes/web.yaml": webWorkload})))
	csar.Resources[0].Artifacts[0].Type, csar.Resources[0].Modules = "ETSI_PACKAGE", nil
	if _, err := d.Put(csar); err != nil {
		t.Fatal(err)
	}
	id := d.want(http.StatusCreated, create(map[string]any{"service_uuid": "csar-service"})).text(t, "csar_id")
	d.has("SOL005 shows the CSAR", d.want(http.StatusOK, d.do("GET", "/vnfpkgm/v1/vnf_packages/"+id, nil)), "vnfdId", any(csartest.VNFD))

	off := startBareService(t)
	off.want(http.StatusUnprocessableEntity, off.do("POST", "/v1/packages", map[string]any{"source": map[string]any{"sdc": map[string]any{"service_uuid": "vfw-service"}}}))
}

// TestSDCPackageOfInstance creates instances of packages that only SDC has.
func TestSDCPackageOfInstance(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcOnDemand)
	d.register("sandbox-sdc")
	const one, several, broken, resource = "6b1a0c1e-0000-4000-8000-000000000001", "6b1a0c1e-0000-4000-8000-000000000002", "6b1a0c1e-0000-4000-8000-000000000003", "6b1a0c1e-0000-4000-8000-000000000004"
	for uuid, chart := range map[string][]byte{one: designedChart("one"), several: designedChart("two"), broken: []byte("no archive")} {
		service := designed("of"+uuid[35:], chart)
		service.UUID = uuid
		if uuid == several {
			service.Resources = append(service.Resources, designed("more", chart).Resources...)
		}
		if uuid == one {
			service.Resources[0].UUID = resource
		}
		if _, err := d.Put(service); err != nil {
			t.Fatal(err)
		}
	}
	create := func(query, csar string) answer {
		return d.do("POST", "/v1/vnf_instances"+query, map[string]any{"cloud_region_id": "sandbox-sdc", "csar_id": csar, "namespace": d.ns, "vnf_instance_name": "of-" + csar})
	}
	d.want(http.StatusOK, create("?dry_run=true", one))
	vnf := d.want(http.StatusCreated, create("", one))
	made := d.want(http.StatusOK, d.do("GET", "/v1/packages/"+one, nil))
	d.has("the package says where it is from", made, "source", any("/sdc/v1/catalog/services/"+one+"/resourceInstances/vf0/artifacts/of1-chart"))
	other := d.want(http.StatusCreated, create("", resource))
	if got := d.want(http.StatusBadRequest, create("", several)); !strings.Contains(string(got.body), `"field":"csar_id"`) {
		t.Errorf("the request does not say which chart: %s", got.body)
	}
	d.want(http.StatusBadRequest, create("", broken))
	d.want(http.StatusNotFound, create("", "6b1a0c1e-0000-4000-8000-00000000000f"))
	d.want(http.StatusNotFound, create("", "vfw-service"))
	for _, made := range []answer{vnf, other} {
		d.operation(made.text(t, "operation_id"))
		d.want(http.StatusNoContent, d.do("DELETE", "/v1/vnf_instances/"+made.text(t, "vnf_id"), nil))
	}
	if all := d.do("GET", "/v1/packages", nil); len(all.field(t, "packages").([]any)) != 2 {
		t.Errorf("nothing is stored of what is wrong: %s", all.body)
	}
}

// TestSDCCompared has SDC get and delete services without a notification.
func TestSDCCompared(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcDistribution, func(s *sdcSettings) { s.Poll = 100 * time.Millisecond })
	if _, err := d.Put(designed("vfw", designedChart("one"))); err != nil {
		t.Fatal(err)
	}
	const definition = "/v1/rb/definition/vfw-invariant/vfw-customization"
	until(t, "the definition is stored", func() bool { return d.do("GET", definition, nil).status == http.StatusOK })
	id := d.want(http.StatusCreated, d.do("POST", "/v1/packages", map[string]any{"source": map[string]any{"sdc": map[string]any{"service_uuid": "vfw-service"}}})).text(t, "csar_id")
	made := d.want(http.StatusOK, d.do("GET", "/v1/packages/"+id, nil))
	d.has("the package names its service", made, "sdc_uuid", any("vfw-service"))
	if strings.Contains(string(made.body), "sdc_deleted_at") {
		t.Errorf("SDC has the service: %s", made.body)
	}
	if err := d.Delete(t.Context(), "vfw-service"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{definition, "/v1/packages/" + id} {
		until(t, path+" is marked", func() bool {
			return strings.Contains(string(d.want(http.StatusOK, d.do("GET", path, nil)).body), "sdc_deleted_at")
		})
	}
}
