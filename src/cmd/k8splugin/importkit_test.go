package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo/mongotest"
)

// plugin is an installation of ONAP's plugin: its databases, and what it has
// made in the sandbox.
type plugin struct {
	t     *testing.T
	mongo string
	db    *mongo.Database
	etcd  *clientv3.Client
	ns    string
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{t: t, mongo: mongotest.Start(t) + "?maxPoolSize=1", ns: clustertest.Namespace(t)}
	client, err := mongo.Connect(options.Client().ApplyURI(p.mongo))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	p.db = client.Database("k8splugin")
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync, c.ZapLoggerBuilder = t.TempDir(), true, embed.NewZapLoggerBuilder(zap.NewNop())
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = local, local, slices.Clone(local), slices.Clone(local)
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	if _, err := p.api("Namespace").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.ns},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.etcd.Close() })
	return p
}

// put writes the data of a tag as ONAP does: into a separate document, whose
// id is in the record of the key.
func (p *plugin) put(collection string, key bson.D, tag string, data any) {
	p.t.Helper()
	c := p.db.Collection(collection)
	made, err := c.InsertOne(p.t.Context(), bson.D{{Key: tag, Value: data}})
	if err == nil {
		_, err = c.UpdateOne(p.t.Context(), bson.D{{Key: "key", Value: key}},
			bson.D{{Key: "$set", Value: bson.D{{Key: tag, Value: made.InsertedID}}}}, options.UpdateOne().SetUpsert(true))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plugin) keep(key string, value any) {
	p.t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		_, err = p.etcd.Put(p.t.Context(), key, string(text))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// document makes a document of names and values.
func document(pairs ...any) bson.D {
	var out bson.D
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

func packed(files map[string]string) string {
	return base64.StdEncoding.EncodeToString(rendertest.TarGz(files))
}

const firewallDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s-fw}
spec:
  replicas: %[2]s
  selector: {matchLabels: {app: %[1]s-fw}}
  template:
    metadata: {labels: {app: %[1]s-fw}}
    spec: {containers: [{name: main, image: %[3]q}]}
`

const firewallMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-fw}\ndata: {who: %s}\n"

// define stores the definition fw 1 with the profile edge, and the template ssh.
func (p *plugin) define() {
	p.t.Helper()
	key := func(more ...any) bson.D { return document(append([]any{"rbname", "fw", "rbversion", "1"}, more...)...) }
	p.put("rbdef", key(), "defmetadata", document("rbname", "fw", "rbversion", "1", "chartname", "fw", "description", "a firewall", "labels", bson.D{}))
	p.put("rbdef", key(), "defcontent", packed(map[string]string{
		"fw/Chart.yaml":            "apiVersion: v2\nname: fw\nversion: 1.0.0\n",
		"fw/values.yaml":           "replicas: 1\nimage: wrong\n",
		"fw/templates/web.yaml":    fmt.Sprintf(firewallDeployment, "{{ .Release.Name }}", "{{ .Values.replicas }}", "{{ .Values.image }}"),
		"fw/templates/config.yaml": fmt.Sprintf(firewallMap, "{{ .Release.Name }}", `{{ index .Values "k8s-rb-instance-id" }}`),
	}))
	for _, profile := range []string{"default", "edge"} {
		p.put("rbdef", key("profilename", profile), "profilemetadata", document("rbname", "fw", "rbversion", "1", "profilename", profile,
			"releasename", map[string]string{"default": "default", "edge": "r1"}[profile], "namespace", map[string]string{"default": "default", "edge": p.ns}[profile],
			"kubernetesversion", "", "labels", map[string]any{"default": nil, "edge": bson.D{}}[profile],
			"extraresourcetypes", map[string]any{"default": nil, "edge": bson.A{}}[profile]))
		values := map[string]string{"default": "{}\n", "edge": "image: " + goodImage + "\n"}[profile]
		p.put("rbdef", key("profilename", profile), "profilecontent", packed(map[string]string{
			"manifest.yaml": "version: v1\ntype:\n  values: override_values.yaml\n", "override_values.yaml": values,
		}))
	}
	p.put("rbdef", key("templatename", "ssh"), "confdefmetadata", document("templatename", "ssh", "description", "keys", "chartname", "ssh", "hascontent", true))
	p.put("rbdef", key("templatename", "ssh"), "confdefcontent", packed(map[string]string{
		"ssh/Chart.yaml":         "apiVersion: v2\nname: ssh\nversion: 1.0.0\n",
		"ssh/templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-ssh}\ndata: {key: {{ .Values.key | quote }}}\n",
	}))
	p.put("connection", document("cloudregion", "sandbox"), "metadata", document("cloudregion", "sandbox", "cloudowner", "me",
		"kubeconfig", base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(p.t)),
		"otherconnectivitylist", document("connectivityrecords", bson.A{document("connectivity-record-name", "ovn")})))
}

// record stores an instance that has these resources in addition to its own.
func (p *plugin) record(id, release string, resources ...bson.D) {
	p.t.Helper()
	all := bson.A{recorded("apps", "Deployment", release+"-fw"), recorded("", "ConfigMap", release+"-fw")}
	for _, r := range resources {
		all = append(all, r)
	}
	p.put("rbdef", document("id", id), "instance", document("id", id,
		"request", document("rbname", "fw", "rbversion", "1", "profilename", "edge", "releasename", release, "cloudregion", "sandbox",
			"labels", document("testCaseName", "import"), "overridevalues", document("replicas", "2", "dbPassword", "planted")),
		"namespace", p.ns, "status", "DONE", "releasename", release, "resources", all, "hooks", nil, "hookprogress", "0/0",
		"preinstalltimeout", int64(60), "postinstalltimeout", int64(600)))
}

func recorded(group, kind, name string) bson.D {
	return document("gvk", document("group", group, "version", "v1", "kind", kind), "name", name)
}

// configure stores two versions of a configuration, and a tag of the first.
func (p *plugin) configure(id string) {
	p.t.Helper()
	root := "onapk8s/config/fw/1/edge/" + id + "/"
	config := func(key string) map[string]any {
		return map[string]any{"config-name": "keys", "template-name": "ssh", "description": key, "values": map[string]any{"key": key, "token": "planted"}}
	}
	p.keep(root+"configversion/keys/1/", map[string]any{"config-new": config("first"), "action": "POST"})
	p.keep(root+"configversion/keys/2/", map[string]any{"config-new": config("second"), "config-prev": config("first"), "action": "PUT"})
	p.keep(root+"configdata/keys/", config("second"))
	p.keep(root+"counter/keys/", 2)
	p.keep(root+"configtag/keys/golden/", 1)
}

// make makes the objects of an instance as ONAP does: by POST, with its label on
// them and on the pods.
func (p *plugin) make(id string, manifests ...string) {
	p.t.Helper()
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			p.t.Fatal(err)
		}
		object.SetLabels(map[string]string{nf.OwnerLabel: id})
		if _, templated, _ := unstructured.NestedMap(object.Object, "spec", "template"); templated {
			_ = unstructured.SetNestedField(object.Object, id, "spec", "template", "metadata", "labels", nf.OwnerLabel)
		}
		if _, err := p.api(object.GetKind()).Create(p.t.Context(), object, metav1.CreateOptions{FieldManager: "k8plugin"}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// api returns the sandbox's objects of a kind, in the installation's namespace.
func (p *plugin) api(kind string) dynamic.ResourceInterface {
	p.t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(clustertest.Kubeconfig(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	r := map[string]schema.GroupVersionResource{
		"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "ConfigMap": {Version: "v1", Resource: "configmaps"},
		"Pod": {Version: "v1", Resource: "pods"}, "Namespace": {Version: "v1", Resource: "namespaces"},
	}[kind]
	if kind == "Namespace" {
		return client.Resource(r)
	}
	return client.Resource(r).Namespace(p.ns)
}

// pods returns the uids of the pods of an instance, when there are so many.
func (p *plugin) pods(id string, count int) []string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	w, err := p.api("Pod").Watch(ctx, metav1.ListOptions{LabelSelector: nf.OwnerLabel + "=" + id})
	if err != nil {
		p.t.Fatal(err)
	}
	defer w.Stop()
	uids := map[string]bool{}
	for len(uids) < count {
		e, ok := <-w.ResultChan()
		if !ok {
			p.t.Fatalf("%d of %d pods come", len(uids), count)
		}
		uids[string(e.Object.(*unstructured.Unstructured).GetUID())] = true
	}
	return sortedKeys(uids)
}

func sortedKeys(set map[string]bool) []string {
	var out []string
	for key := range set {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// gone waits until an object no longer exists.
func (p *plugin) gone(kind, name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	w, err := p.api(kind).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: "0"})
	if err != nil {
		p.t.Fatal(err)
	}
	defer w.Stop()
	list, err := p.api(kind).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return
	}
	for e := range w.ResultChan() {
		if e.Type == "DELETED" {
			return
		}
	}
	p.t.Errorf("%s %s stays", kind, name)
}
