package onapstore_test

import (
	"context"
	"encoding/base64"
	"net/url"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/zap"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo/mongotest"
)

// plugin writes as ONAP's plugin does.
type plugin struct {
	t    *testing.T
	uri  string
	db   *mongo.Database
	etcd *clientv3.Client // nil: there is none
}

// newPlugin returns a plugin with its own databases.
func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := pluginIn(t, mongotest.Start(t)+"?maxPoolSize=1", "k8splugin")
	var err error
	p.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{startEtcd(t)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.etcd.Close() })
	return p
}

// pluginIn returns a plugin without configurations.
func pluginIn(t *testing.T, uri, database string) *plugin {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return &plugin{t: t, uri: uri, db: client.Database(database)}
}

// startEtcd starts an etcd and returns its URL.
func startEtcd(t *testing.T) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync, c.ZapLoggerBuilder = t.TempDir(), true, embed.NewZapLoggerBuilder(zap.NewNop())
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{local}, []url.URL{local}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{local}, []url.URL{local}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return "http://" + e.Clients[0].Addr().String()
}

// put writes the data of a tag into a separate document, and the document's id
// into the record of the key.
func (p *plugin) put(collection string, key bson.D, tag string, data any) (id any) {
	p.t.Helper()
	made, err := p.db.Collection(collection).InsertOne(p.t.Context(), bson.D{{Key: tag, Value: data}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.refer(collection, key, tag, made.InsertedID)
	return made.InsertedID
}

func (p *plugin) refer(collection string, key bson.D, tag string, id any) {
	p.t.Helper()
	_, err := p.db.Collection(collection).UpdateOne(p.t.Context(), bson.D{{Key: "key", Value: key}},
		bson.D{{Key: "$set", Value: bson.D{{Key: tag, Value: id}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plugin) drop(collection string, id any) {
	p.t.Helper()
	if _, err := p.db.Collection(collection).DeleteOne(p.t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
		p.t.Fatal(err)
	}
}

// keep writes keys of etcd: pairs of one and its value.
func (p *plugin) keep(pairs ...string) {
	p.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if _, err := p.etcd.Put(p.t.Context(), pairs[i], pairs[i+1]); err != nil {
			p.t.Fatal(err)
		}
	}
}

// read opens the databases and reads them.
func (p *plugin) read() (*onapstore.Store, onapstore.Installation) {
	p.t.Helper()
	cfg := onapstore.Config{Mongo: nf.Secret(p.uri), Database: p.db.Name()}
	if p.etcd != nil {
		cfg.Etcd = &onapstore.Etcd{Endpoints: p.etcd.Endpoints()}
	}
	s, err := onapstore.Open(p.t.Context(), cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	out, err := s.Read(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s, out
}

func definition(name, version string) bson.D {
	return bson.D{{Key: "rbname", Value: name}, {Key: "rbversion", Value: version}}
}

func profile(name, version, profile string) bson.D {
	return append(definition(name, version), bson.E{Key: "profilename", Value: profile})
}

func template(name, version, template string) bson.D {
	return append(definition(name, version), bson.E{Key: "templatename", Value: template})
}

func instance(id string) bson.D { return bson.D{{Key: "id", Value: id}} }

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
