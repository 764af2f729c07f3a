package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/nfvo"
	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
)

const (
	neverReadyImage = "sandbox.invalid/never-ready:1"
	missingImage    = "sandbox.invalid/no-such-image:1"
)

// killedVNF is a VNF whose service is killed with SIGKILL in each state of its occurrence.
type killedVNF struct {
	testService

	service    *restarting
	grants     *nfvo.Simulator
	notified   *subscriber.Simulator
	namespace  string
	occurrence string       // its path
	seen       map[any]bool // ids of notifications
}

// TestVNFKilled lets an instantiation fail, retries it or rolls it back, and kills the
// service with SIGKILL in each state. It is one occurrence, and a subscriber is notified of
// each of its states once and in order.
func TestVNFKilled(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		end    func(*killedVNF)
		want   []string
	}{
		"Retry":    {"a retry completes it", (*killedVNF).retry, []string{"STARTING", "PROCESSING", "FAILED_TEMP", "PROCESSING", "COMPLETED"}},
		"Rollback": {"a rollback leaves nothing", (*killedVNF).rollback, []string{"STARTING", "PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "ROLLED_BACK"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startKilledVNF(t)
			k.fail()
			tc.end(k)
			var states []string
			until(t, "the last notification arrives", func() bool {
				states = append(states, k.states()...)
				return slices.Contains(states, tc.want[len(tc.want)-1])
			})
			if diff := cmp.Diff(tc.want, states); diff != "" {
				t.Errorf("%s: the notifications (-want +got):\n%s", tc.reason, diff)
			}
			if wrong := k.notified.Violations(); len(wrong) > 0 {
				t.Errorf("%s: violations: %q", tc.reason, wrong)
			}
		})
	}
}

// startKilledVNF starts the service with an NFVO and a subscriber, and creates a VNF whose
// pods do not become ready.
func startKilledVNF(t *testing.T) *killedVNF {
	t.Helper()
	k := &killedVNF{
		grants: nfvo.New(nfvo.Config{}), notified: subscriber.New(subscriber.Config{Version: "2.0.0", Links: "https://vnfm.example"}), namespace: clustertest.Namespace(t),
		seen: map[any]bool{},
	}
	grants, callback := httptest.NewServer(k.grants), httptest.NewServer(k.notified)
	t.Cleanup(grants.Close)
	t.Cleanup(callback.Close)
	k.service = serveAgain(t, func() {}, []string{
		"--allowed-callbacks", "127.0.0.1", "--vnf-endpoint", "https://vnfm.example", "--nfvo", grants.URL, "--nfvo-service-url", "https://vnfm.example",
	})
	checked := northboundtest.Client(t, k8splugin.Swagger).Transport
	k.testService = testService{t: t, url: k.service.url, client: &http.Client{Transport: script.Persistent{Transport: checked}}}
	k.want(http.StatusCreated, k.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "sandbox", "kubeconfig": clustertest.Kubeconfig(t)}))
	pkg := "/vnfpkgm/v1/vnf_packages/" + k.want(http.StatusCreated, k.do("POST", "/vnfpkgm/v1/vnf_packages", map[string]any{})).text(t, "id")
	files := csartest.Described(webFlavor, map[string]string{"Files/kubernetes/web.yaml": strings.Replace(webWorkload, "example.com/web:1", neverReadyImage, 1)})
	k.want(http.StatusAccepted, k.do("PUT", pkg+"/package_content", archive(files)))
	k.want(http.StatusCreated, k.ask("POST", "/vnflcm/v2/subscriptions", map[string]any{
		"callbackUri": callback.URL + subscriber.Callback, "filter": map[string]any{"notificationTypes": []string{"VnfLcmOperationOccurrenceNotification"}},
	}))
	return k
}

// ask sends a request of version 2 of SOL003.
func (k *killedVNF) ask(method, path string, body any) answer {
	k.t.Helper()
	return k.send(k.t.Context(), method, path, body, "Version", "2.0.0")
}

// is waits until the occurrence is in a state.
func (k *killedVNF) is(state nf.OccurrenceState) {
	k.t.Helper()
	until(k.t, "the occurrence is "+string(state), func() bool {
		return k.want(http.StatusOK, k.ask("GET", k.occurrence, nil)).text(k.t, "operationState") == string(state)
	})
}

// becomes waits until the occurrence is in a state, while the pods of the VNF have an image.
// A process that resumes an attempt may apply the one of the package again.
func (k *killedVNF) becomes(state nf.OccurrenceState, image string) {
	k.t.Helper()
	until(k.t, "the occurrence becomes "+string(state), func() bool {
		clustertest.Unblock(k.t, k.namespace, "web", image)
		return k.want(http.StatusOK, k.ask("GET", k.occurrence, nil)).text(k.t, "operationState") == string(state)
	})
}

// killed kills the service when the occurrence is in a state, and waits until it is in that
// state again.
func (k *killedVNF) killed(state nf.OccurrenceState) {
	k.t.Helper()
	k.is(state)
	k.service.kill()
	k.is(state)
}

// fail instantiates the VNF: the NFVO takes time to grant it, and then the image of the pods
// cannot be pulled.
func (k *killedVNF) fail() {
	k.t.Helper()
	decide := make(chan struct{})
	k.grants.Script(nfvo.Fault{Times: 2, Before: func() { <-decide }})
	vnf := k.want(http.StatusCreated, k.ask("POST", "/vnflcm/v2/vnf_instances", map[string]any{"vnfdId": csartest.VNFD})).text(k.t, "id")
	accepted := k.want(http.StatusAccepted, k.ask("POST", "/vnflcm/v2/vnf_instances/"+vnf+"/instantiate", map[string]any{
		"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]any{"vimId": nf.Region{ID: "sandbox"}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}},
		"additionalParams": map[string]any{"namespace": k.namespace, "lcm-kubernetes-def-files": []string{"Files/kubernetes/web.yaml"}},
	}))
	k.occurrence = strings.TrimPrefix(accepted.header.Get("Location"), k.url)
	k.killed(nf.OccurrenceStarting)
	close(decide)
	clustertest.WaitForDeployment(k.t, k.namespace, "web")
	k.killed(nf.OccurrenceProcessing)
	k.becomes(nf.OccurrenceFailedTemp, missingImage)
	k.killed(nf.OccurrenceFailedTemp)
}

// retry retries the instantiation. Its image is repaired.
func (k *killedVNF) retry() {
	k.t.Helper()
	k.want(http.StatusAccepted, k.ask("POST", k.occurrence+"/retry", nil))
	until(k.t, "the Deployment has the image of the package", func() bool {
		containers, _, _ := unstructured.NestedSlice(k.web().Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)["image"] == neverReadyImage
	})
	k.killed(nf.OccurrenceProcessing)
	k.becomes(nf.OccurrenceCompleted, goodImage)
}

// rollback rolls the instantiation back. A finalizer keeps its Deployment for a while.
func (k *killedVNF) rollback() {
	k.t.Helper()
	keep := func(finalizers ...any) {
		clustertest.Patch(k.t, k.web(), "deployments", map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	}
	keep("example.com/keep")
	k.want(http.StatusAccepted, k.ask("POST", k.occurrence+"/rollback", nil))
	until(k.t, "the Deployment is being deleted", func() bool { return clustertest.Get(k.t, k.web()).GetDeletionTimestamp() != nil })
	k.killed(nf.OccurrenceRollingBack)
	keep()
	k.is(nf.OccurrenceRolledBack)
}

// web returns the Deployment of the VNF.
func (k *killedVNF) web() *unstructured.Unstructured {
	k.t.Helper()
	of := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": k.namespace}}}
	return clustertest.Get(k.t, of)
}

// states returns the states that the subscriber was notified of since the last call. The
// simulator has checked that a repeated notification is the same.
func (k *killedVNF) states() []string {
	var out []string
	for _, e := range k.notified.Journal() {
		if id := e.Document["id"]; e.Method == http.MethodPost && e.Status == http.StatusNoContent && !k.seen[id] {
			k.seen[id] = true
			out = append(out, e.Document["operationState"].(string))
		}
	}
	return out
}
