package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

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
	knows      *knowledge
	self       *Cluster // that acts as the service itself; nil: this one does
}

// knowledge is what an API server serves, as last read. Whoever acts on it, it is
// the same.
type knowledge struct {
	mu    sync.Mutex
	kinds *kinds // nil: not read yet
}

// As returns a cluster that acts as a service account, "namespace/name", so that
// the API server allows what it allows that. What has no owner, which is the
// namespaces and the API itself, it reads and makes as the service. Without a
// service account it is the cluster itself.
func (c *Cluster) As(serviceAccount string) *Cluster {
	namespace, name, ok := strings.Cut(serviceAccount, "/")
	if !ok {
		return c
	}
	out := *c
	out.rest = impersonator{c.rest, "system:serviceaccount:" + namespace + ":" + name}
	out.self = c.itself()
	return &out
}

// itself returns the cluster that acts as the service itself.
func (c *Cluster) itself() *Cluster {
	if c.self == nil {
		return c
	}
	return c.self
}

// impersonator makes requests for a user.
type impersonator struct {
	rest.Interface

	user string
}

func (i impersonator) Verb(verb string) *rest.Request {
	return i.Interface.Verb(verb).SetHeader(transport.ImpersonateUserHeader, i.user)
}

func (i impersonator) Post() *rest.Request   { return i.Verb(http.MethodPost) }
func (i impersonator) Put() *rest.Request    { return i.Verb(http.MethodPut) }
func (i impersonator) Get() *rest.Request    { return i.Verb(http.MethodGet) }
func (i impersonator) Delete() *rest.Request { return i.Verb(http.MethodDelete) }

func (i impersonator) Patch(t types.PatchType) *rest.Request {
	return i.Verb(http.MethodPatch).SetHeader("Content-Type", string(t))
}

// newCluster makes the cluster of a region.
func newCluster(cfg *rest.Config, region string, pc PoolConfig) (*Cluster, error) {
	g := newGuard(region, pc)
	client, err := g.connect(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{http: client, guard: g, credential: credentialOf(cfg), parallel: pc.Parallel, knows: &knowledge{}}
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
