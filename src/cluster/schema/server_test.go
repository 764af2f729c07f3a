package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// server is a real API server: the Source of the checks, and the judge of them.
type server struct {
	t         testing.TB
	namespace string
	discovery *discovery.DiscoveryClient
	dynamic   dynamic.Interface
	resources map[schema.GroupVersionKind]metav1.APIResource

	mu        sync.Mutex
	published []byte   // the index, until it is dropped
	read      []string // URLs of the documents that were read
}

var _ Source = (*server)(nil)

func newServer(t testing.TB) *server {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	s := &server{t: t, namespace: "default", discovery: discovery.NewDiscoveryClientForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg)}
	s.discover()
	return s
}

// discover reads which kinds the server has, as it does after a definition.
func (s *server) discover() {
	s.t.Helper()
	_, lists, err := s.discovery.ServerGroupsAndResources()
	if err != nil {
		s.t.Fatal(err)
	}
	s.resources = map[schema.GroupVersionKind]metav1.APIResource{}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				s.resources[gv.WithKind(r.Kind)] = r
			}
		}
	}
}

func (s *server) Index(ctx context.Context) (_ []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published == nil {
		s.published, err = s.get(ctx, "/openapi/v3")
	}
	return s.published, err
}

func (s *server) Document(ctx context.Context, url string) ([]byte, error) {
	s.mu.Lock()
	s.read = append(s.read, url)
	s.mu.Unlock()
	return s.get(ctx, url)
}

func (s *server) get(ctx context.Context, url string) ([]byte, error) {
	return s.discovery.RESTClient().Get().RequestURI(url).Do(ctx).Raw()
}

func (s *server) Mutating(ctx context.Context) (out []*unstructured.Unstructured, err error) {
	for _, resource := range []string{"mutatingwebhookconfigurations", "mutatingadmissionpolicies"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		list, err := s.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

func (s *server) Live(ctx context.Context, ref nf.Ref) (*unstructured.Unstructured, error) {
	gvk := schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
	u, err := s.of(gvk).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nf.E(nf.NotFound, "read", ref.String(), err)
	}
	return u, err
}

func (s *server) of(gvk schema.GroupVersionKind) dynamic.ResourceInterface {
	r := s.resources[gvk]
	i := s.dynamic.Resource(gvk.GroupVersion().WithResource(r.Name))
	if r.Namespaced {
		return i.Namespace(s.namespace)
	}
	return i
}

// apply applies an object as the service does, in a dry run unless it is told
// otherwise.
func (s *server) apply(u *unstructured.Unstructured, dry ...string) error {
	return s.applyAs("test", u, dry...)
}

func (s *server) applyAs(manager string, u *unstructured.Unstructured, dry ...string) error {
	u = u.DeepCopy()
	gvk := u.GroupVersionKind()
	r, ok := s.resources[gvk]
	if !ok {
		s.t.Fatalf("%s is not served", gvk)
	}
	if r.Namespaced {
		u.SetNamespace(s.namespace)
	}
	body, err := u.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.of(gvk).Patch(s.t.Context(), cmp.Or(u.GetName(), "-"), types.ApplyPatchType, body, metav1.PatchOptions{
		DryRun: dry, FieldManager: manager, FieldValidation: metav1.FieldValidationStrict, Force: new(true),
	})
	return err
}

// remove deletes an object.
func (s *server) remove(u *unstructured.Unstructured) error {
	return s.of(u.GroupVersionKind()).Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
}

func (s *server) dryRun(u *unstructured.Unstructured) error { return s.apply(u, metav1.DryRunAll) }

// check checks objects that the server does not have.
func (s *server) check(r *Region, us ...*unstructured.Unstructured) Result {
	s.t.Helper()
	var all []Object
	for _, u := range us {
		all = append(all, Object{Unstructured: u, Resource: s.resources[u.GroupVersionKind()].Name})
	}
	result, err := r.Check(s.t.Context(), all)
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// definitionKinds are the kinds that a definition brings.
func definitionKinds(t testing.TB, u *unstructured.Unstructured) map[schema.GroupVersionKind]*served {
	t.Helper()
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	d, err := definition(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.kinds
}

// lines are violations, one to a line.
func lines(v nf.Violations) []string {
	out := []string{}
	for _, violation := range v {
		out = append(out, strings.TrimPrefix(violation.Field+": ", ": ")+violation.Message)
	}
	return out
}
