package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// probeTimeout ends a probe whose context sets no earlier end.
const probeTimeout = 15 * time.Second

// Probe connects to the API server of a kubeconfig, proves that it lets us in,
// and returns what it serves. A kubeconfig that cannot be used is nf.Invalid;
// every other failure is nf.Unreachable, and its Reason says how far it got:
// "dns", "tcp", "tls", "timeout", "not-kubernetes", "unauthorized" (the server
// does not know us) or "forbidden" (it does, and refuses).
//
// It is nf.Invalid, too, when the pool's hosts do not allow the address.
func (p *Pool) Probe(ctx context.Context, kubeconfig []byte) (nf.Probe, error) {
	cfg, err := Parse(kubeconfig)
	if err == nil {
		err = checkAddresses(cfg, p.cfg.Hosts)
	}
	if err != nil {
		return nf.Probe{}, err
	}
	c, err := newCluster(cfg, "", PoolConfig{Parallel: 1, Hosts: p.cfg.Hosts}.filled())
	if err != nil {
		return nf.Probe{}, nf.E(nf.Invalid, "use", "kubeconfig", err)
	}
	defer c.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var seen nf.Probe
	err = c.turn(ctx, c.guard.share.answer, func(ctx context.Context) (err error) {
		seen, err = c.probe(ctx)
		return err
	})
	if err != nil {
		reason := probeReason(ctx, err)
		return nf.Probe{}, &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "API server " + cfg.Host, Reason: reason, Err: probeError(reason, err)}
	}
	seen.Server = cfg.Host
	return seen, nil
}

func (c *Cluster) probe(ctx context.Context) (nf.Probe, error) {
	var v version.Info
	if err := c.ask(ctx, &v, "/version"); err != nil {
		return nf.Probe{}, err
	}
	if v.GitVersion == "" {
		return nf.Probe{}, errGarbage
	}
	if err := c.whoAmI(ctx); err != nil {
		return nf.Probe{}, err
	}
	var core metav1.APIVersions
	var groups metav1.APIGroupList
	if err := errors.Join(c.ask(ctx, &core, "/api"), c.ask(ctx, &groups, "/apis")); err != nil {
		return nf.Probe{}, err
	}
	apis := slices.Clone(core.Versions)
	for _, group := range groups.Groups {
		for _, gv := range group.Versions {
			apis = append(apis, gv.GroupVersion)
		}
	}
	slices.Sort(apis)
	return nf.Probe{Version: v.GitVersion, APIs: apis, Time: time.Now().UTC()}, nil
}

// whoAmI makes a request that the API server refuses to anybody whom it does
// not know. The rest of what a probe reads may be open to all.
func (c *Cluster) whoAmI(ctx context.Context) error {
	review := func(group, version, kind, resource, spec string) error {
		body := fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"%s"%s}`, group, version, kind, spec)
		return c.rest.Post().AbsPath("/apis", group, version, resource).Body(body).MaxRetries(0).Do(ctx).Error()
	}
	err := review("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", "")
	if apierrors.IsNotFound(err) { // before Kubernetes 1.28
		err = review("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
			`,"spec":{"resourceAttributes":{"verb":"list","resource":"namespaces"}}`)
	}
	return err
}

// ask reads a document that is not an object. It does not repeat itself: who
// waits for a probe wants to know at once.
func (c *Cluster) ask(ctx context.Context, out any, path string) error {
	var code int
	result := c.rest.Get().AbsPath(path).MaxRetries(0).Do(ctx).StatusCode(&code)
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if json.Unmarshal(body, out) != nil {
		return errGarbage
	}
	return nil
}

func probeReason(ctx context.Context, err error) string {
	status, refused := errors.AsType[*apierrors.StatusError](err)
	switch {
	case ctx.Err() != nil:
		return "timeout"
	case !refused:
		return unreachable(err)
	}
	switch status.Status().Code {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "forbidden"
	}
	return "not-kubernetes"
}

// probeError says in a sentence what a reason means and what to look at.
func probeError(reason string, err error) error {
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("the server does not speak TLS; is its address http instead of https?: %w", err)
	case errors.Is(err, errGarbage), isOversized(err):
		return err
	}
	return fmt.Errorf("%s: %w", sentences[reason], err)
}

var sentences = map[string]string{
	"dns":            "its name is not known to DNS",
	"tcp":            "nothing answers at its address",
	"tls":            "its certificate is not the one that the kubeconfig trusts",
	"timeout":        "it did not answer in time",
	"unavailable":    "its API server is not available",
	"not-kubernetes": "it is not a Kubernetes API server",
	"oversized":      "it does not behave as a Kubernetes API server does",
	"crowded":        "it is being asked too much",
	"not-allowed":    "its address is one that only the operator may allow (--region-allow)",
	"unauthorized":   "it does not accept the kubeconfig's credentials (401)",
	"forbidden":      "it forbids the kubeconfig's user to use its API (403)",
}
