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
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// probeTimeout limits a probe whose context has no earlier deadline.
const probeTimeout = 15 * time.Second

// Probe connects to an API server, verifies that it accepts the credentials of
// the access, and returns its version and APIs.
//
// It returns nf.Invalid if the access cannot be used, or if the pool's hosts do
// not allow its addresses. Every other failure is nf.Unreachable with a reason:
// "dns", "tcp", "tls", "timeout", "not-kubernetes", "unauthorized" (the
// credentials are not accepted) or "forbidden" (the user lacks permission), or
// another reason of package nf. All probes of a pool share the limits of one
// region, because a server that is not registered is not trusted.
func (p *Pool) Probe(ctx context.Context, access nf.Access) (nf.Probe, error) {
	c, err := p.stranger(access)
	if err != nil {
		return nf.Probe{}, err
	}
	defer c.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var seen nf.Probe
	err = c.transport.usage.turn(ctx, c.transport.usage.limits.answer, func(ctx context.Context) (err error) {
		seen, err = probe(ctx, c.service)
		return err
	})
	if err != nil {
		reason := probeReason(ctx, err)
		return nf.Probe{}, &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "API server " + access.Server, Reason: reason, Err: probeError(reason, err)}
	}
	seen.Server = access.Server
	return seen, nil
}

// stranger returns the cluster of an access that is not a region.
func (p *Pool) stranger(access nf.Access) (*Cluster, error) {
	if err := p.Check(access); err != nil {
		return nil, err
	}
	c, err := newCluster(access, "", PoolConfig{Parallel: 1, Hosts: p.cfg.Hosts, limits: p.cfg.limits, usage: p.probes, codecs: p.cfg.codecs}.filled())
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "access", err)
	}
	return c, nil
}

// Visit calls use with the cluster of an access that need not be a region, and returns
// its error. The cluster must not be used afterwards. All strangers of a pool share the
// limits of one region. Visit returns nf.Invalid as Probe does.
func (p *Pool) Visit(access nf.Access, use func(*Cluster) error) error {
	c, err := p.stranger(access)
	if err != nil {
		return err
	}
	defer c.transport.close()
	return use(c)
}

// probe reads the version and the APIs, and verifies the credentials.
func probe(ctx context.Context, c *client) (nf.Probe, error) {
	var v version.Info
	if err := getDocument(ctx, c, &v, "/version"); err != nil {
		return nf.Probe{}, err
	}
	if v.GitVersion == "" {
		return nf.Probe{}, errGarbage
	}
	if err := checkCredentials(ctx, c); err != nil {
		return nf.Probe{}, err
	}
	var core metav1.APIVersions
	var groups metav1.APIGroupList
	if err := errors.Join(getDocument(ctx, c, &core, "/api"), getDocument(ctx, c, &groups, "/apis")); err != nil {
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

// checkCredentials sends a request that the API server rejects if it does not
// accept the credentials. The other requests of a probe may be open to anonymous users.
func checkCredentials(ctx context.Context, c *client) error {
	review := func(group, version, kind, resource, spec string) error {
		body := fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"%s"%s}`, group, version, kind, spec)
		return c.verb(http.MethodPost).AbsPath("/apis", group, version, resource).Body(body).MaxRetries(0).Do(ctx).Error()
	}
	err := review("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", "")
	if apierrors.IsNotFound(err) { // before Kubernetes 1.28
		err = review("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
			`,"spec":{"resourceAttributes":{"verb":"list","resource":"namespaces"}}`)
	}
	return err
}

// getDocument reads a document that is not an object. It does not retry, so that a
// probe fails fast.
func getDocument(ctx context.Context, c *client, out any, path string) error {
	var code int
	result := c.verb(http.MethodGet).AbsPath(path).MaxRetries(0).Do(ctx).StatusCode(&code)
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
		return nf.ReasonTimeout
	case !refused:
		return unreachable(err)
	}
	switch status.Status().Code {
	case http.StatusUnauthorized:
		return nf.ReasonUnauthorized
	case http.StatusForbidden:
		return nf.ReasonForbidden
	}
	return nf.ReasonNotKubernetes
}

// probeError adds the meaning of a reason to an error.
func probeError(reason string, err error) error {
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; is its address http instead of https?", outbound.Plain(err))
	case errors.Is(err, errGarbage), isOversized(err):
		return err
	}
	return fmt.Errorf("%s: %w", sentences[reason], outbound.Plain(err))
}

var sentences = map[string]string{
	nf.ReasonDNS:           "DNS cannot resolve its name",
	nf.ReasonTCP:           "no server answers at its address",
	nf.ReasonTLS:           "its certificate is not the one that the region's access trusts",
	nf.ReasonTimeout:       "it did not answer in time",
	nf.ReasonUnavailable:   "its API server is not available",
	nf.ReasonNotKubernetes: "it is not a Kubernetes API server",
	nf.ReasonOversized:     "it does not behave as a Kubernetes API server does",
	nf.ReasonCrowded:       "it receives too many requests",
	nf.ReasonNotAllowed:    "its address is one that only the operator may allow (--allowed-region-hosts)",
	nf.ReasonUnauthorized:  "it does not accept the region's credential (401)",
	nf.ReasonForbidden:     "it denies the user of the region's credential access to its API (403)",
}
