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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Cluster is one API server. Its methods are the contract of lifecycle.Cluster;
// every error of theirs is an nf.Error. It is safe for concurrent use.
type Cluster struct {
	http      *http.Client
	rest      rest.Interface    // for all but watches: it knows nothing of types
	dynamic   dynamic.Interface // for watches
	discovery *discovery.DiscoveryClient
	parallel  int

	mu    sync.Mutex
	kinds *kinds // what the API server serves, as last read; nil before
}

func newCluster(cfg *rest.Config, parallel int) (*Cluster, error) {
	client, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{http: client, parallel: parallel}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("cannot make the discovery client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, client); err != nil {
		return nil, fmt.Errorf("cannot make the watching client: %w", err)
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
