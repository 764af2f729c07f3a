package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/simulator/nfvo"
)

// clientCertificate returns a certificate that signs itself, and the files of it and its key.
func clientCertificate(t *testing.T) (c *x509.Certificate, file, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "k8splugin"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return c, pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", secret)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	return configFileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// grants is the service with a simulated NFVO and a VNF package, and the regions "sandbox"
// and "granted", which is another name of the same cluster.
type grants struct {
	*testService

	nfvo *nfvo.Simulator
	ns   string
}

// startGrants starts the service and an NFVO behind TLS. The service proves itself by a
// token, or by a client certificate.
func startGrants(t *testing.T, byToken bool) grants {
	t.Helper()
	cfg := nfvo.Config{}
	if byToken {
		cfg = nfvo.Config{User: "vnfm", Password: "gr4nt-s3cret", Tokens: true}
	}
	sim := nfvo.New(cfg)
	server := httptest.NewUnstartedServer(sim)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	files := peer.Files{}
	if byToken {
		files.User, files.Password = configFileOf(t, cfg.User), configFileOf(t, cfg.Password)
	} else {
		var certificate *x509.Certificate
		certificate, files.Certificate, files.Key = clientCertificate(t)
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
		server.TLS.ClientCAs.AddCert(certificate)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	files.CA = pemFile(t, "CERTIFICATE", server.Certificate().Raw)
	settings := nfvoSettings{URL: server.URL, Service: "https://vnfm.example", Files: files}
	if byToken {
		settings.TokenURL = server.URL + "/token"
	}
	g := grants{startService(t, func(c *Config) { c.NFVO = settings }), sim, clustertest.Namespace(t)}
	g.want(http.StatusCreated, g.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "granted", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	clustertest.Node(t, g.ns, map[string]string{"topology.kubernetes.io/zone": g.zone()}, nil, false)
	content := csartest.Files(map[string]string{"Files/kubernetes/web.yaml": strings.Replace(webWorkload, "containers:", "nodeName: "+g.ns+", containers:", 1)})
	delete(content, "sample.mf")
	content["Definitions/df_simple.yaml"] = webFlavor
	content["sample.mf"] = csartest.Manifest(content)
	g.upload("web", content)
	return g
}

// zone returns the availability zone of the node on which the pods run.
func (g grants) zone() string { return "zone-" + g.ns }

func (g grants) lcm(method, at string, body any) answer {
	g.t.Helper()
	return g.send(g.t.Context(), method, "/vnflcm/v2/"+at, body, "Version", "2.0.0", "Content-Type", "application/json")
}

// vnf creates a VNF.
func (g grants) vnf() string {
	g.t.Helper()
	return g.want(http.StatusCreated, g.lcm("POST", "vnf_instances", map[string]any{"vnfdId": csartest.VNFD})).text(g.t, "id")
}

// instantiate starts to instantiate a VNF in the region "sandbox", and returns the
// occurrence.
func (g grants) instantiate(vnf string) string {
	g.t.Helper()
	begun := g.want(http.StatusAccepted, g.lcm("POST", "vnf_instances/"+vnf+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": vimConnection("sandbox")},
		"additionalParams": map[string]any{"namespace": g.ns, "lcm-kubernetes-def-files": []string{"Files/kubernetes/web.yaml"}},
	}))
	return path.Base(begun.header.Get("Location"))
}

func vimConnection(region string) map[string]any {
	return map[string]any{"vimId": nf.Region{ID: region}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}
}

// ends waits until an occurrence is in a state.
func (g grants) ends(occurrence string, state nf.OccurrenceState) (out answer) {
	g.t.Helper()
	until(g.t, "the occurrence is "+string(state), func() bool {
		out = g.want(http.StatusOK, g.lcm("GET", "vnf_lcm_op_occs/"+occurrence, nil))
		now := nf.OccurrenceState(out.text(g.t, "operationState"))
		if now != state && !now.Running() {
			g.t.Fatalf("the occurrence is %s: %s", now, out.body)
		}
		return now == state
	})
	return out
}

// TestGrants asks a simulated NFVO for the grants of a VNF, with the whole service and a real
// API server.
func TestGrants(t *testing.T) {
	t.Parallel()
	for name, byToken := range map[string]bool{"token": true, "certificate": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGrants(t, byToken)
			g.refused()
			vnf := g.vnf()
			g.placed(vnf)
			g.later(vnf)
		})
	}
}

// refused has NFVOs that refuse an instantiation, or do not decide about it.
func (g grants) refused() {
	g.t.Helper()
	vnf := g.vnf()
	for _, tc := range []struct {
		reason string
		faults []nfvo.Fault
		says   string
	}{
		{"the NFVO refuses", []nfvo.Fault{{Status: http.StatusForbidden, Detail: "no room in the edge"}}, "no room in the edge"},
		{"it refuses after a while", []nfvo.Fault{{Later: 1, Status: http.StatusForbidden, Detail: "no room in the edge"}}, "no room in the edge"},
		{"it ends the connection", []nfvo.Fault{{Cut: true}}, "NFVO"},
		{"it grants a VIM that is not registered", []nfvo.Fault{{Edit: func(grant map[string]any) {
			grant["vimConnectionInfo"] = map[string]any{"vim": vimConnection("nowhere")}
		}}}, nf.Region{ID: "nowhere"}.VIMID()},
	} {
		g.nfvo.Script(tc.faults...)
		detail := g.ends(g.instantiate(vnf), nf.OccurrenceRolledBack).text(g.t, "error.detail")
		if !strings.Contains(detail, tc.says) || strings.Contains(detail, "gr4nt-s3cret") {
			g.t.Errorf("%s: the error of the occurrence is %q", tc.reason, detail)
		}
		g.want(http.StatusNotFound, g.do("GET", "/v1/vnf_instances/"+vnf, nil))
		if state := g.want(http.StatusOK, g.lcm("GET", "vnf_instances/"+vnf, nil)).text(g.t, "instantiationState"); state != "NOT_INSTANTIATED" {
			g.t.Errorf("%s: the VNF is %s", tc.reason, state)
		}
	}
	g.nfvo.Journal()
}

// placed has a grant that places the VNF in another region, and in a zone of it. Nothing is
// created before the NFVO has decided.
func (g grants) placed(vnf string) {
	g.t.Helper()
	asked, decide := make(chan struct{}), make(chan struct{})
	g.nfvo.Script(nfvo.Fault{
		Before: func() { close(asked); <-decide },
		Edit: func(grant map[string]any) {
			grant["vimConnectionInfo"] = map[string]any{"granted": vimConnection("granted")}
			grant["zones"] = []any{map[string]any{"id": "z", "zoneId": g.zone()}}
			for _, one := range grant["addResources"].([]any) {
				one.(map[string]any)["zoneId"], one.(map[string]any)["vimConnectionId"] = "z", "granted"
			}
		},
	})
	occurrence := g.instantiate(vnf)
	select {
	case <-asked:
	case <-g.t.Context().Done():
		g.t.Fatal("the NFVO was not asked")
	}
	if state := g.want(http.StatusOK, g.lcm("GET", "vnf_lcm_op_occs/"+occurrence, nil)).text(g.t, "operationState"); state != string(nf.OccurrenceStarting) {
		g.t.Errorf("before the grant, the occurrence is %s", state)
	}
	g.want(http.StatusNotFound, g.do("GET", "/v1/vnf_instances/"+vnf, nil))
	close(decide)
	done := g.ends(occurrence, nf.OccurrenceCompleted)
	if done.text(g.t, "grantId") == "" {
		g.t.Errorf("the occurrence has no grant: %s", done.body)
	}
	if region := g.want(http.StatusOK, g.do("GET", "/v1/vnf_instances/"+vnf, nil)).text(g.t, "cloud_region_id"); region != "granted" {
		g.t.Errorf("the instance is in region %s", region)
	}
	deployment := clustertest.Get(g.t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": g.ns},
	}})
	if nodes, _ := json.Marshal(deployment.Object["spec"].(map[string]any)["template"]); !strings.Contains(string(nodes), "topology.kubernetes.io/zone") || !strings.Contains(string(nodes), g.zone()) {
		g.t.Errorf("the pods of the Deployment are in any zone: %s", nodes)
	}
	g.asked(map[string][]string{"addResources": {"VDU1"}})
}

// asked compares the last request for a grant with the VDUs that it has to name.
func (g grants) asked(want map[string][]string) {
	g.t.Helper()
	got := map[string][]string{}
	for _, e := range g.nfvo.Journal() {
		if e.Method != http.MethodPost || e.Path != "/grant/v1/grants" {
			continue
		}
		var request map[string]json.RawMessage
		if err := json.Unmarshal(e.Body, &request); err != nil {
			g.t.Fatal(err)
		}
		clear(got)
		for _, key := range []string{"addResources", "removeResources", "updateResources"} {
			var all []struct {
				VDU string `json:"vduId"`
			}
			_ = json.Unmarshal(request[key], &all) // a key that is missing has none
			for _, one := range all {
				got[key] = append(got[key], one.VDU)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		g.t.Errorf("the NFVO was asked for other resources (-want +got):\n%s", diff)
	}
}

// later has an NFVO that decides later about a scaling, is slow about a termination, and then
// is not reached any more.
func (g grants) later(vnf string) {
	g.t.Helper()
	change := func(verb string, body map[string]any) string {
		g.t.Helper()
		return path.Base(g.want(http.StatusAccepted, g.lcm("POST", "vnf_instances/"+vnf+"/"+verb, body)).header.Get("Location"))
	}
	g.nfvo.Script(nfvo.Fault{Later: 2})
	g.ends(change("scale", map[string]any{"type": "SCALE_OUT", "aspectId": "front"}), nf.OccurrenceCompleted)
	g.asked(map[string][]string{"addResources": {"VDU1"}})
	g.nfvo.Script(nfvo.Fault{Cut: true})
	g.ends(change("scale", map[string]any{"type": "SCALE_OUT", "aspectId": "front"}), nf.OccurrenceRolledBack)
	if pods := g.want(http.StatusOK, g.lcm("GET", "vnf_instances/"+vnf, nil)).field(g.t, "instantiatedVnfInfo.vnfcResourceInfo"); len(pods.([]any)) != 2 {
		g.t.Errorf("the VNF has the pods %v", pods)
	}
	g.nfvo.Script(nfvo.Fault{Delay: time.Second})
	g.ends(change("terminate", map[string]any{"terminationType": "FORCEFUL"}), nf.OccurrenceCompleted)
	g.asked(map[string][]string{"removeResources": {"VDU1", "VDU1"}})
}
