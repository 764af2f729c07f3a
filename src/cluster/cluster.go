package cluster

import (
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Cluster is one API server. Its methods are the contract of lifecycle.Cluster;
// every error of theirs is an nf.Error. While the region gives no answer they
// fail at once with nf.Unreachable, reason "breaker", and After says when the
// next request will be let through; when the pool has dropped the cluster, with
// reason "replaced". It is safe for concurrent use.
type Cluster struct {
	http       *http.Client
	guard      *guard         // every request goes through it
	rest       rest.Interface // it knows nothing of types
	discovery  *discovery.DiscoveryClient
	credential nf.Credential
	parallel   int

	mu    sync.Mutex
	kinds *kinds // what the API server serves, as last read; nil before
}

// newCluster makes the cluster of a region.
func newCluster(cfg *rest.Config, region string, pc PoolConfig) (*Cluster, error) {
	g := newGuard(region, pc)
	client, err := g.connect(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{http: client, guard: g, credential: credentialOf(cfg), parallel: pc.Parallel}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("cannot make the discovery client: %w", err)
	}
	plain := rest.CopyConfig(cfg)
	plain.NegotiatedSerializer = statuses()
	plain.WarningHandler = rest.NoWarnings{} // Apply returns them instead
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(plain, client); err != nil {
		return nil, fmt.Errorf("cannot make the client: %w", err)
	}
	return c, nil
}

// statuses decodes the one type that the plain client needs: an API server's
// way to say no.
func statuses() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(s).WithoutConversion()
}
