package cluster

import (
	"fmt"
	"strings"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Cluster is a client of one region's API server. It implements
// lifecycle.Cluster; every error is an nf.Error. While the circuit breaker is
// open, methods fail at once with nf.Unreachable, reason "breaker", and After
// is the time until the next request is allowed. After the pool has dropped the
// cluster, they fail with reason "replaced". Cluster is safe for concurrent
// use.
type Cluster struct {
	transport  *breakerTransport
	credential nf.Credential
	service    *client // sends requests as the service
	client     *client // sends requests as As has set it; by default as the service
	survey     survey
}

// As returns a cluster that impersonates a service account, "namespace/name",
// so that the API server allows only what it allows that account. Namespaces,
// API discovery, schemas and admission configurations are still accessed as the
// service. If serviceAccount is empty, As returns c.
func (c *Cluster) As(serviceAccount string) *Cluster {
	namespace, name, ok := strings.Cut(serviceAccount, "/")
	if !ok {
		return c
	}
	out := *c
	out.client = c.service.as("system:serviceaccount:" + namespace + ":" + name)
	return &out
}

// newCluster creates the cluster of a region.
func newCluster(access nf.Access, id string, pc PoolConfig) (*Cluster, error) {
	cfg, err := configure(access)
	if err != nil {
		return nil, err
	}
	bt := newBreakerTransport(id, access, pc)
	connection, err := bt.connect(cfg)
	if err != nil {
		return nil, err
	}
	switch {
	case access.OIDC != nil:
		bt.tokens = newTokens(pc.Clock, bt.tokenLog())
		bt.tokens.fetch = bt.passwordGrant(*access.OIDC)
	case access.Account() != nil:
		bt.tokens = bt.accountTokens(access)
	case access.Renews():
		if bt.certificates, err = bt.accessCertificates(access); err != nil {
			return nil, fmt.Errorf("cannot use the client certificate: %w", err)
		}
	}
	surveys, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, connection)
	if err != nil {
		return nil, fmt.Errorf("cannot create the discovery client: %w", err)
	}
	plain := rest.CopyConfig(cfg)
	plain.NegotiatedSerializer = pc.codecs
	plain.WarningHandler = rest.NoWarnings{} // Apply returns them instead
	untyped, err := rest.UnversionedRESTClientForConfigAndClient(plain, connection)
	if err != nil {
		return nil, fmt.Errorf("cannot create the client: %w", err)
	}
	c := &client{
		region: region(id), transport: bt, answers: newAnswers(pc.Clock), verb: untyped.Verb, parallel: pc.Parallel,
		apis: &apis{region: region(id), usage: bt.usage, discovery: surveys, sets: pc.kinds, rules: pc.Readiness, clock: pc.Clock},
	}
	return &Cluster{
		transport: bt, credential: credentialOf(access), service: c, client: c,
		survey: survey{pc.surveys, semaphore.NewWeighted(1)},
	}, nil
}

// statuses decodes metav1.Status, the only type that the untyped client needs.
// It takes 9 KiB, so the clusters of a pool share it.
func statuses() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}
