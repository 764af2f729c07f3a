package main

import (
	"maps"
	"net/http"
	"path"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// vnfOf creates a VNF of a project in a region, and returns its id and that of the
// occurrence of its instantiation, which is completed.
func (w *accessWorld) vnfOf(project, region string) (vnf, occurrence string) {
	w.t.Helper()
	if region == accesstest.East { // the package is for both regions
		pkg := w.want(http.StatusCreated, w.as(admin, "POST", "/vnfpkgm/v1/vnf_packages?project="+project, map[string]any{})).text(w.t, "id")
		content := archive(csartest.Files(map[string]string{"Files/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}))
		w.want(http.StatusAccepted, w.as(admin, "PUT", "/vnfpkgm/v1/vnf_packages/"+pkg+"/package_content", content, "Content-Type", "application/zip"))
	}
	const all = "/vnflcm/v2/vnf_instances"
	vnf = w.want(http.StatusCreated, w.as(admin, "POST", all+"?project="+project, map[string]any{"vnfdId": csartest.VNFD}, "Version", "2.0.0")).text(w.t, "id")
	begun := w.want(http.StatusAccepted, w.as(admin, "POST", all+"/"+vnf+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]string{"vimId": nf.Region{ID: region}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}},
		"additionalParams": map[string]string{"namespace": clustertest.Namespace(w.t)},
	}, "Version", "2.0.0"))
	at := "/vnflcm/v2/vnf_lcm_op_occs/" + path.Base(begun.header.Get("Location"))
	until(w.t, "the VNF is instantiated", func() bool {
		got := w.want(http.StatusOK, w.as(admin, "GET", at, nil, "Version", "2.0.0"))
		return got.text(w.t, "operationState") == string(nf.OccurrenceCompleted)
	})
	return vnf, path.Base(at)
}

// vnfRouteAccess lists the identities that may make the requests for VNFs. The VNFs of the
// test are instantiated.
func vnfRouteAccess() map[string][]routeRule {
	vnf := func(need nf.Permission, body string) []routeRule {
		return []routeRule{{of: accesstest.Instance, see: nf.ReadInstance, need: need, body: body}}
	}
	out := map[string][]routeRule{"GET /vnflcm/api_versions": {{open: true}}}
	for _, root := range []string{"/vnflcm/v1", "/vnflcm/v2"} {
		all, one, occurrence := root+"/vnf_instances", root+"/vnf_instances/{vnf_instance_id}", root+"/vnf_lcm_op_occs/{occurrence_id}"
		maps.Copy(out, map[string][]routeRule{
			"GET " + root + "/api_versions": {{open: true}},
			"POST " + all:                   {{of: accesstest.Package, need: nf.CreateInstance, query: "?project={project}", body: `{"vnfdId": "` + csartest.VNFD + `"}`}},
			"GET " + all:                    {{list: true}},
			"GET " + one:                    vnf("", ""),
			"PATCH " + one:                  vnf(nf.ChangeInstance, `{"vnfInstanceName": "x"}`),
			"DELETE " + one:                 vnf(nf.RemoveInstance, ""),
			"POST " + one + "/instantiate":  vnf(nf.CreateInstance, `{"flavourId": "simple"}`),
			"POST " + one + "/terminate":    vnf(nf.RemoveInstance, `{"terminationType": "FORCEFUL"}`),
			"POST " + one + "/scale":        vnf(nf.ChangeInstance, `{"type": "SCALE_OUT", "aspectId": "a"}`),
			"POST " + one + "/heal":         vnf(nf.ChangeInstance, `{}`),
			"POST " + one + "/change_ext_conn": vnf(nf.ChangeInstance,
				`{"extVirtualLinks": [{"id": "a", "resourceId": "none", "extCps": [{"cpdId": "c", "cpConfig": `+map[string]string{"/vnflcm/v1": `[{}]`, "/vnflcm/v2": `{"k": {}}`}[root]+`}]}], "additionalParams": {"cp_map": {"c": "web"}}}`),
			"GET " + root + "/vnf_lcm_op_occs": {{list: true}},
			"GET " + occurrence:                vnf("", ""),
			"POST " + occurrence + "/retry":    vnf(nf.CreateInstance, ""),
			"POST " + occurrence + "/rollback": vnf(nf.CreateInstance, ""),
			"POST " + occurrence + "/fail":     vnf(nf.CreateInstance, ""),
			"POST " + occurrence + "/cancel":   vnf(nf.CreateInstance, `{"cancelMode": "FORCEFUL"}`),
		})
	}
	out["POST /vnflcm/v2/vnf_instances/{vnf_instance_id}/change_vnfpkg"] = vnf(nf.ChangeInstance, `{"vnfdId": "none", "additionalParams": {}}`)
	return out
}
