package vnflcm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// linked returns a request with one external link that has one connection point, in the
// form of the version.
func (w *world) linked(config string) string {
	if w.root == "/vnflcm/v1" {
		config = "[" + config + "]"
	} else {
		config = `{"default": ` + config + `}`
	}
	return `{"extVirtualLinks": [{"id": "l", "resourceId": "blue", "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": ` + config + `}]}], "flavourId": "simple"}`
}

func TestExternalLinks(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		const ethernet = `{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"macAddress": "02:00:00:00:00:01", "ipAddresses": [{"type": "IPV4", "fixedAddresses": ["192.0.2.10"]}, {"type": "IPV6", "fixedAddresses": ["2001:db8::1"]}]}}]}`
		cases := map[string]struct {
			reason, body string
			want         []nf.Attachment
		}{
			"Plain":   {"the network assigns the address", w.linked(`{}`), []nf.Attachment{{Network: "blue", Workload: "web", Point: "VDU1_CP1"}}},
			"Dynamic": {"which a request may say", w.linked(`{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [{"type": "IPV4", "numDynamicAddresses": 1}]}}]}`), []nf.Attachment{{Network: "blue", Workload: "web", Point: "VDU1_CP1"}}},
			"Fixed":   {"fixed addresses", w.linked(ethernet), []nf.Attachment{{Network: "blue", Workload: "web", Point: "VDU1_CP1", MAC: "02:00:00:00:00:01", IPs: []string{"192.0.2.10", "2001:db8::1"}}}},
			"Mapped": {
				"the request names the workload", strings.Replace(strings.Replace(w.linked(`{}`), "VDU1_CP1", "other", 1), "{", `{"additionalParams": {"cp_map": {"other": "Deployment/db"}}, `, 1),
				[]nf.Attachment{{Network: "blue", Workload: "Deployment/db", Point: "other"}},
			},
		}
		for name, tc := range cases {
			w.accepted("POST", w.created()+"/instantiate", tc.body)
			if r, _ := w.last.(nf.InstantiateVNFRequest); cmp.Diff(tc.want, r.Networks) != "" {
				t.Errorf("%s: %s: %+v", name, tc.reason, r.Networks)
			}
			w.accepted("POST", w.instantiated()+"/change_ext_conn", tc.body)
			if r, _ := w.last.(nf.ConnectVNFRequest); cmp.Diff(tc.want, r.Networks) != "" {
				t.Errorf("%s: %s: %+v", name, tc.reason, r.Networks)
			}
		}
		at := w.instantiated()
		w.set(at, func(v *nf.VNF) {
			v.Instantiated.Params = map[string]any{"cp_map": map[string]any{"other": "db"}}
		})
		w.accepted("POST", at+"/change_ext_conn", strings.Replace(w.linked(`{}`), "VDU1_CP1", "other", 1))
		if r, _ := w.last.(nf.ConnectVNFRequest); len(r.Networks) != 1 || r.Networks[0].Workload != "db" {
			t.Errorf("the map of the instantiation: %+v", r.Networks)
		}
		at = w.instantiated()
		w.set(at, func(v *nf.VNF) { v.Package, v.Instantiated.Package = "next", v.Package })
		w.accepted("POST", at+"/change_ext_conn", w.linked(`{}`))
		if r, _ := w.last.(nf.ConnectVNFRequest); len(r.Networks) != 1 || r.Networks[0].Workload != "web" {
			t.Errorf("the connection points of the package that runs: %+v", r.Networks)
		}
		w.want(http.StatusNotFound, "POST", "/vnf_instances/none/change_ext_conn", w.linked(`{}`))

		at = w.instantiated()
		first := w.accepted("POST", at+"/change_ext_conn", w.linked(`{}`), "Idempotency-Key", "k")
		w.enter(occurrenceID(first), nf.OccurrenceCompleted)
		w.set(at, func(v *nf.VNF) { v.Instantiated = nil })
		if again := w.accepted("POST", at+"/change_ext_conn", w.linked(`{}`), "Idempotency-Key", "k"); again != first {
			t.Errorf("the VNF is terminated, and the repeated request started %s, want %s", again, first)
		}
	})
}

// TestUnfitLinks checks that what an attachment does not have is refused with its path.
func TestUnfitLinks(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		config := "extVirtualLinks[0].extCps[0].cpConfig.default"
		if w.root == "/vnflcm/v1" {
			config = "extVirtualLinks[0].extCps[0].cpConfig[0]"
		}
		protocol := config + ".cpProtocolData[0].ipOverEthernet"
		ethernet := func(text string) string {
			return w.linked(`{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ` + text + `}]}`)
		}
		cases := map[string]struct {
			body, field string
			status      int
		}{
			"Point":      {strings.Replace(w.linked(`{}`), "VDU1_CP1", "x", 1), "extVirtualLinks[0].extCps[0].cpdId", 422},
			"Flavor":     {strings.Replace(w.linked(`{}`), "simple", "x", 1), "extVirtualLinks[0].extCps[0].cpdId", 422},
			"Port":       {w.linked(`{"linkPortId": "p"}`), config + ".linkPortId", 422},
			"Definition": {w.linked(`{"netAttDefResourceId": ["a"]}`), config + ".netAttDefResourceId", 422},
			"Ports":      {strings.Replace(w.linked(`{}`), `"id": "l"`, `"id": "l", "extLinkPorts": [{"id": "p"}]`, 1), "extVirtualLinks[0].extLinkPorts", 422},
			"Resources":  {strings.Replace(w.linked(`{}`), `"id": "l"`, `"id": "l", "extNetAttDefResourceData": [{"a": "b"}]`, 1), "extVirtualLinks[0].extNetAttDefResourceData", 422},
			"Segment":    {ethernet(`{"segmentationId": "7"}`), protocol + ".segmentationId", 422},
			"Range":      {ethernet(`{"ipAddresses": [{"type": "IPV4", "addressRange": {}}]}`), protocol + ".ipAddresses[0].addressRange", 422},
			"Subnet":     {ethernet(`{"ipAddresses": [{"type": "IPV4", "subnetId": "s"}]}`), protocol + ".ipAddresses[0].subnetId", 422},
			"MAC":        {ethernet(`{"macAddress": "x"}`), protocol + ".macAddress", 400},
			"IP":         {ethernet(`{"ipAddresses": [{"type": "IPV4", "fixedAddresses": ["x"]}]}`), protocol + ".ipAddresses[0].fixedAddresses[0]", 400},
			"Family":     {ethernet(`{"ipAddresses": [{"type": "IPV4", "fixedAddresses": ["2001:db8::1"]}]}`), protocol + ".ipAddresses[0].fixedAddresses[0]", 400},
			"Layer":      {w.linked(`{"cpProtocolData": [{"layerProtocol": "IP_FOR_VIRTUAL_CP"}]}`), config + ".cpProtocolData[0].layerProtocol", 400},
			"TwoMACs": {
				w.linked(`{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"macAddress": "02:00:00:00:00:01"}}, {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"macAddress": "02:00:00:00:00:02"}}]}`),
				config + ".cpProtocolData[1].ipOverEthernet.macAddress", 422,
			},
		}
		at := w.created()
		for name, tc := range cases {
			problem := w.want(tc.status, "POST", at+"/instantiate", tc.body).fields(t)
			errors, _ := problem["errors"].([]any)
			first, _ := errors[0].(map[string]any)
			if len(errors) != 1 || first["field"] != tc.field || problem["detail"] == "" || problem["title"] == "" {
				t.Errorf("%s: %v, want the field %s", name, errors, tc.field)
			}
		}
		w.want(http.StatusUnprocessableEntity, "POST", at+"/instantiate", `{"flavourId": "simple", "extManagedVirtualLinks": [{"id": "a"}]}`)
	})
}
