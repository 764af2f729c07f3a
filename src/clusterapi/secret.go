package clusterapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// versions are the versions of Cluster that the package can read, best first.
var versions = []string{"v1beta2", "v1beta1"}

// retry is how long to wait for a change in the region that has the Cluster.
const retry = 2 * time.Second

// notYet returns the error of a cluster that cannot be used yet.
func notYet(p nf.Parent, format string, args ...any) error {
	return &nf.Error{
		Kind: nf.Unreachable, Op: "register", Subject: "cloud region " + p.Workload.Region, RetryAfter: retry,
		Err: fmt.Errorf("its Cluster %s/%s %s", p.Workload.Namespace, p.Workload.Cluster, fmt.Sprintf(format, args...)),
	}
}

// secret returns the administrator's kubeconfig of a cluster, once its control plane is
// initialized.
func (r *Registrar) secret(ctx context.Context, p nf.Parent) (nf.Secret, error) {
	parent, err := r.cfg.Open(ctx, p.Region, p.Project)
	if err != nil {
		return nil, err
	}
	object, err := cluster(ctx, parent, p)
	switch {
	case err != nil:
		return nil, err
	case object == nil:
		return nil, notYet(p, "does not exist")
	case !initialized(object):
		return nil, notYet(p, "has no initialized control plane yet")
	}
	ref := nf.Ref{Version: "v1", Kind: "Secret", Namespace: p.Workload.Namespace, Name: p.Workload.Cluster + "-kubeconfig"}
	secret, err := parent.Lookup(ctx, ref)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, notYet(p, "has no Secret %s yet", ref.Name)
	}
	return valueOf(secret, "value", p)
}

// cluster returns the Cluster object; nil if the parent does not have it.
func cluster(ctx context.Context, parent Reader, p nf.Parent) (map[string]any, error) {
	for _, version := range versions {
		object, err := parent.Lookup(ctx, p.Ref(version))
		if err != nil || object != nil {
			return object, err
		}
	}
	return nil, nil
}

// initialized reports whether the first node of a control plane answers. In v1beta2, that
// is a field of the status; in v1beta1, a condition.
func initialized(cluster map[string]any) bool {
	if done, _, _ := unstructured.NestedBool(cluster, "status", "initialization", "controlPlaneInitialized"); done {
		return true
	}
	if cluster["apiVersion"] != nf.ClusterGroup+"/v1beta1" {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(cluster, "status", "conditions")
	for _, c := range conditions {
		if of, _ := c.(map[string]any); of["type"] == "ControlPlaneInitialized" && of["status"] == "True" {
			return true
		}
	}
	return false
}

// valueOf returns an entry of a Secret. Its errors do not quote it.
func valueOf(secret map[string]any, key string, p nf.Parent) (nf.Secret, error) {
	text, _, _ := unstructured.NestedString(secret, "data", key)
	if text == "" {
		return nil, notYet(p, "has a Secret without %s", key)
	}
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, nf.E(nf.Failed, "register", "cloud region "+p.Workload.Region, errors.New("the Secret of its Cluster is not base64"))
	}
	return value, nil
}
