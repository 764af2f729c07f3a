package vnflcm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestSecretsOfVIMs shows connections to VIMs whose further data have a password, which the
// world looks for in each answer.
func TestSecretsOfVIMs(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		cases := map[string]struct{ reason, extra, shown, masked string }{
			"Dictionary": {
				"only the password is hidden", `{"helm_info": {"masternode_ip": ["192.0.2.1"], "masternode_username": "u", "masternode_password": "s3cret"}}`,
				`"masternode_username":"u"`, `{"helm_info": {"masternode_ip": ["192.0.2.1"], "masternode_password": "` + nf.Masked + `"}}`,
			},
			"Text": {"the text is hidden", `{"helm_info": "{'masternode_password':'s3cret'}", "a": "b"}`, `"a":"b"`, `{"helm_info": "` + nf.Masked + `"}`},
		}
		for name, tc := range cases {
			vims := func(extra string) string {
				if w.root == "/vnflcm/v1" {
					return `{"flavourId": "simple", "vimConnectionInfo": [{"id": "vim1", "vimId": "v", "vimType": "T", "extra": ` + extra + `}]}`
				}
				return `{"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimId": "v", "vimType": "T", "extra": ` + extra + `}}}`
			}
			at := w.created()
			occurrence := w.accepted("POST", at+"/instantiate", vims(tc.extra))
			asked := w.last.(nf.InstantiateVNFRequest).VIMs["vim1"]
			w.set(at, func(v *nf.VNF) {
				v.VIMs = map[string]nf.VIMConnection{"vim1": {VIM: asked.VIM, Type: asked.Type, Extra: asked.Extra}}
			})
			for _, path := range []string{at, "/vnf_instances?all_fields", occurrence, "/vnf_lcm_op_occs?all_fields"} {
				if got := w.want(http.StatusOK, "GET", path, ""); !strings.Contains(got.body, tc.shown) || !strings.Contains(got.body, nf.Masked) {
					t.Errorf("%s: %s: GET %s: %s", name, tc.reason, path, got.body)
				}
			}
			for _, request := range [][2]string{{"PATCH", at}, {"POST", w.created() + "/instantiate"}} {
				got := w.want(http.StatusBadRequest, request[0], request[1], vims(tc.masked))
				if !strings.Contains(got.body, "vimConnectionInfo.vim1.extra.helm_info") || !strings.Contains(got.body, "is the mask of a hidden value") {
					t.Errorf("%s: a mask: %s", name, got.body)
				}
			}
		}
	})
}
