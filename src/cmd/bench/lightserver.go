package main

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// lightServer is an API server for more regions and objects than a real one can
// hold on the machine of a benchmark. It has a path for each region, keeps their
// objects in memory, and serves the kinds of the load. It accepts every object,
// never deletes one, and has no schemas.
type lightServer struct {
	server *httptest.Server

	mu          sync.Mutex
	collections map[string]*collection
	faults      map[string]http.Handler // instead of the region's own responses
}

// collection holds the objects of one kind in one region, in the order of their
// creation. A resource version is the number of objects that existed.
type collection struct {
	kind string

	mu      sync.Mutex
	items   []lightObject
	index   map[string]int // in items, by namespace and name
	changed chan struct{}  // closed when an object is added
}

type lightObject struct {
	namespace string
	content   []byte
}

// lightKinds are the kinds that the server has, by resource.
var lightKinds = map[string]string{"namespaces": "Namespace", "configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "pods": "Pod",
	"events": "Event", "deployments": "Deployment", "replicasets": "ReplicaSet"}

func newLightServer() *lightServer {
	debug.SetGCPercent(400) // of this process: collections of garbage would disturb the service
	l := &lightServer{collections: map[string]*collection{}, faults: map[string]http.Handler{}}
	l.server = httptest.NewUnstartedServer(l)
	l.server.EnableHTTP2 = true
	l.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // of clients that end a handshake
	l.server.StartTLS()
	return l
}

func (l *lightServer) close() {
	l.server.CloseClientConnections()
	l.server.Close()
}

// kubeconfig returns the access to a region.
func (l *lightServer) kubeconfig(region string) []byte {
	return kubeconfigOf(l.server, "/"+region)
}

// kubeconfigOf returns an access to a server of this process. Its token means nothing.
func kubeconfigOf(server *httptest.Server, path string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	text, _ := json.Marshal(map[string]any{ // strings and bytes always have a JSON form
		"apiVersion": "v1", "kind": "Config", "current-context": "bench",
		"clusters": []any{map[string]any{"name": "bench", "cluster": map[string]any{"server": server.URL + path, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "bench", "user": map[string]any{"token": rand.Text()}}},
		"contexts": []any{map[string]any{"name": "bench", "context": map[string]any{"cluster": "bench", "user": "bench"}}},
	})
	return text
}

// fault replaces the responses of a region; nil restores them.
func (l *lightServer) fault(region string, handler http.Handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[region] = handler
}

// ServeHTTP implements http.Handler.
func (l *lightServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	region, path := regionAndPath(r)
	l.mu.Lock()
	fault := l.faults[region]
	l.mu.Unlock()
	if fault != nil {
		fault.ServeHTTP(w, r)
		return
	}
	l.respond(w, r, region, path)
}

func regionAndPath(r *http.Request) (region, path string) {
	region, path, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return region, path
}

// respond responds as a region without a fault.
func (l *lightServer) respond(w http.ResponseWriter, r *http.Request, region, path string) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(path, "/")
	switch {
	case path == "version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.0-light"}`)
	case path == "readyz" || strings.HasSuffix(path, "reviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	case path == "api" || path == "apis":
		discover(w, path, strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList"))
	case len(parts) > 2 && parts[0] == "api":
		l.objects(w, r, region, parts[2:])
	case len(parts) > 3 && parts[0] == "apis":
		l.objects(w, r, region, parts[3:])
	default:
		absent(w)
	}
}

// discover lists the kinds of the core group or of the others, in the aggregated
// form or only by their versions.
func discover(w http.ResponseWriter, path string, aggregated bool) {
	switch {
	case !aggregated && path == "api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		return
	case !aggregated:
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
		return
	}
	group, names := "", []string{"namespaces", "configmaps", "secrets", "services", "pods", "events"}
	if path == "apis" {
		group, names = "apps", []string{"deployments", "replicasets"}
	}
	resources := make([]string, len(names))
	for i, name := range names {
		scope := "Namespaced"
		if name == "namespaces" {
			scope = "Cluster"
		}
		resources[i] = fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":"v1","kind":%q},"scope":%q,"singularResource":"x",`+
			`"verbs":["create","delete","get","list","patch","update","watch"]}`, name, group, lightKinds[name], scope)
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":%q},`+
		`"versions":[{"version":"v1","freshness":"Current","resources":[%s]}]}]}`, group, strings.Join(resources, ","))
}

func absent(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
}

// objects serves the collections of a region. Parts is the path below the group
// and its version: namespaces/NAMESPACE/RESOURCE/NAME, or a part of it.
func (l *lightServer) objects(w http.ResponseWriter, r *http.Request, region string, parts []string) {
	namespace, name := "", ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	if lightKinds[parts[0]] == "" {
		absent(w)
		return
	}
	c := l.collection(region, parts[0])
	switch {
	case r.Method == http.MethodPost || r.Method == http.MethodPatch:
		c.create(w, r, namespace)
	case r.Method == http.MethodGet && name != "":
		c.get(w, namespace+"/"+name)
	case r.URL.Query().Get("watch") == "true":
		c.watch(w, r, namespace)
	case r.Method == http.MethodGet:
		c.list(w, namespace)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (l *lightServer) collection(region, resource string) *collection {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := region + "/" + resource
	if l.collections[key] == nil {
		l.collections[key] = &collection{kind: lightKinds[resource], index: map[string]int{}, changed: make(chan struct{})}
	}
	return l.collections[key]
}

// create adds the object of the request, unless it is a dry run.
func (c *collection) create(w http.ResponseWriter, r *http.Request, namespace string) {
	var object map[string]any
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	metadata["uid"], metadata["generation"], metadata["creationTimestamp"] = rand.Text(), 1, "2026-01-01T00:00:00Z"
	if c.kind == "Deployment" {
		object["status"] = map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	metadata["resourceVersion"] = strconv.Itoa(len(c.items) + 1)
	content, _ := json.Marshal(object) // it was JSON
	if r.URL.Query().Get("dryRun") == "" {
		c.index[namespace+"/"+name] = len(c.items)
		c.items = append(c.items, lightObject{namespace, content})
		close(c.changed)
		c.changed = make(chan struct{})
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(content)
}

func (c *collection) get(w http.ResponseWriter, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.index[key]
	if !ok {
		absent(w)
		return
	}
	_, _ = w.Write(c.items[i].content)
}

// since returns the objects of a namespace that were added after a resource
// version, the present resource version, and a channel that is closed at the
// next change.
func (c *collection) since(version int, namespace string) (objects [][]byte, now int, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.items[min(version, len(c.items)):] {
		if namespace == "" || o.namespace == namespace {
			objects = append(objects, o.content)
		}
	}
	return objects, len(c.items), c.changed
}

func (c *collection) list(w http.ResponseWriter, namespace string) {
	objects, now, _ := c.since(0, namespace)
	_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`, c.kind, now)
	for i, o := range objects {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = w.Write(o)
	}
	_, _ = io.WriteString(w, "]}")
}

// watch sends the objects that are added, until the client ends the request.
func (c *collection) watch(w http.ResponseWriter, r *http.Request, namespace string) {
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for {
		objects, now, changed := c.since(version, namespace)
		for _, o := range objects {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", o)
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		version = now
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
