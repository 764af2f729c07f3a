package onapstore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo/mongotest"
)

// fill writes an installation with one of everything.
func (p *plugin) fill() {
	p.t.Helper()
	p.put("rbdef", definition("fw", "1"), "defmetadata", bson.D{
		{Key: "rbname", Value: "fw"}, {Key: "rbversion", Value: "1"}, {Key: "chartname", Value: "firewall"},
		{Key: "description", Value: "a firewall"}, {Key: "labels", Value: bson.D{{Key: "vf_module", Value: "m"}}},
	})
	p.put("rbdef", definition("fw", "1"), "defcontent", encoded("the first upload"))
	p.put("rbdef", definition("fw", "1"), "defcontent", encoded("the chart")) // the first one is an orphan now
	p.put("rbdef", profile("fw", "1", "edge"), "profilemetadata", bson.D{
		{Key: "rbname", Value: "fw"}, {Key: "rbversion", Value: "1"}, {Key: "profilename", Value: "edge"}, {Key: "releasename", Value: "rel"},
		{Key: "namespace", Value: "ns"}, {Key: "kubernetesversion", Value: "1.30"}, {Key: "labels", Value: nil},
		{Key: "extraresourcetypes", Value: bson.A{bson.D{{Key: "group", Value: "g"}, {Key: "version", Value: "v1"}, {Key: "kind", Value: "K"}}}},
	})
	p.put("rbdef", profile("fw", "1", "edge"), "profilecontent", encoded("the overlay"))
	p.put("rbdef", template("fw", "1", "ssh"), "confdefmetadata", bson.D{
		{Key: "templatename", Value: "ssh"}, {Key: "description", Value: "keys"}, {Key: "chartname", Value: "c"}, {Key: "hascontent", Value: true},
	})
	p.put("rbdef", template("fw", "1", "ssh"), "confdefcontent", encoded("the template"))
	p.put("connection", bson.D{{Key: "cloudregion", Value: "east"}}, "metadata", bson.D{
		{Key: "cloudregion", Value: "east"}, {Key: "cloudowner", Value: "me"}, {Key: "kubeconfig", Value: encoded("apiVersion: v1")},
		{Key: "otherconnectivitylist", Value: bson.D{{Key: "connectivityrecords", Value: bson.A{bson.D{{Key: "connectivity-record-name", Value: "ovn"}}}}}},
	})
	p.put("rbdef", instance("sad_bell"), "instance", instanceDocument("sad_bell"))
	p.put("rbdef", bson.D{{Key: "instanceid", Value: "sad_bell"}, {Key: "subscriptionname", Value: "s"}}, "instanceStatusSub", bson.D{})
	p.put("rbdef", bson.D{{Key: "instanceid", Value: "sad_bell"}, {Key: "healthcheckid", Value: "h"}}, "instanceHC", bson.D{})
	p.put("instanceNames", bson.D{{Key: "key", Value: "k8sPluginCacheKey"}}, "names", bson.D{{Key: "sad_bell", Value: true}, {Key: "old_fox", Value: true}})
	if p.etcd == nil {
		return
	}
	p.keep(
		prefix+"configdata/ssh/", `{"config-name":"ssh","template-name":"ssh","description":"d","values":{"n":2},"config-version":2,"config-tag":""}`,
		prefix+"configversion/ssh/1/", `{"config-new":{"config-name":"ssh","template-name":"ssh","values":{"n":1}},"config-prev":{},"action":"POST","resources":[]}`,
		prefix+"configversion/ssh/2/", `{"config-new":{"config-name":"ssh","template-name":"ssh","description":"d","values":{"n":2}},"config-prev":{},"action":"PUT"}`,
		prefix+"counter/ssh/", "2",
		prefix+"configtag/ssh/first/", "1",
	)
}

const prefix = "onapk8s/config/fw/1/edge/sad_bell/"

func instanceDocument(id string) bson.D {
	return bson.D{
		{Key: "id", Value: id},
		{Key: "request", Value: bson.D{
			{Key: "rbname", Value: "fw"}, {Key: "rbversion", Value: "1"}, {Key: "profilename", Value: "edge"}, {Key: "releasename", Value: ""},
			{Key: "cloudregion", Value: "east"}, {Key: "labels", Value: bson.D{{Key: "a", Value: "b"}}},
			{Key: "overridevalues", Value: bson.D{{Key: "replicas", Value: "2"}}},
		}},
		{Key: "namespace", Value: "ns"}, {Key: "status", Value: "DONE"}, {Key: "releasename", Value: "rel"},
		{Key: "resources", Value: bson.A{bson.D{
			{Key: "gvk", Value: bson.D{{Key: "group", Value: "apps"}, {Key: "version", Value: "v1"}, {Key: "kind", Value: "Deployment"}}},
			{Key: "name", Value: "web"},
		}}},
		{Key: "hooks", Value: bson.A{bson.D{{Key: "hook", Value: bson.D{{Key: "weight", Value: 1}}}}}}, {Key: "hookprogress", Value: "1/1"},
		{Key: "preinstalltimeout", Value: int64(30)},
	}
}

func TestRead(t *testing.T) {
	p := newPlugin(t)
	p.fill()
	s, got := p.read()
	want := onapstore.Installation{
		Definitions: []onapstore.Definition{{
			Name: "fw", Version: "1", Chart: "firewall", Description: "a firewall", Labels: map[string]string{"vf_module": "m"},
		}},
		Profiles: []onapstore.Profile{{
			Definition: "fw", Version: "1", Name: "edge", Release: "rel", Namespace: "ns", KubeVersion: "1.30",
			Extra: []onapstore.Type{{Group: "g", Version: "v1", Kind: "K"}},
		}},
		Templates: []onapstore.Template{{Definition: "fw", Version: "1", Name: "ssh", Description: "keys"}},
		Connections: []onapstore.Connection{{
			Region: "east", Owner: "me", Kubeconfig: nf.Secret("apiVersion: v1"), Records: []map[string]string{{"connectivity-record-name": "ovn"}},
		}},
		Instances: []onapstore.Instance{{
			ID: "sad_bell", Namespace: "ns", Status: "DONE", Release: "rel", Timeouts: map[string]int64{"pre-install": 30},
			Request: onapstore.Request{
				Definition: "fw", Version: "1", Profile: "edge", Region: "east", Labels: map[string]string{"a": "b"},
				Overrides: map[string]string{"replicas": "2"},
			},
			Resources: []onapstore.Resource{{Type: onapstore.Type{Group: "apps", Version: "v1", Kind: "Deployment"}, Name: "web"}},
			Configurations: []onapstore.Configuration{{
				Name: "ssh", Current: 2, InForce: true, Tags: []onapstore.Tag{{Name: "first", Number: 1}},
				Versions: []onapstore.Version{
					{Number: 1, Template: "ssh", Values: []byte(`{"n":1}`)},
					{Number: 2, Template: "ssh", Description: "d", Values: []byte(`{"n":2}`)},
				},
			}},
		}},
		Names: []string{"old_fox", "sad_bell"}, Subscriptions: 1, HealthChecks: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(onapstore.Content{})); diff != "" {
		t.Errorf("what was read (-want +got):\n%s", diff)
	}
	for text, c := range map[string]onapstore.Content{
		"the chart": got.Definitions[0].Content, "the overlay": got.Profiles[0].Content, "the template": got.Templates[0].Content,
	} {
		if archive, err := s.Content(t.Context(), c); err != nil || string(archive) != text {
			t.Errorf("the content is %q, %v, want %q: the last upload is the one that counts", archive, err, text)
		}
	}
}

func TestReadNothing(t *testing.T) {
	_, got := newPlugin(t).read()
	if diff := cmp.Diff(onapstore.Installation{}, got); diff != "" {
		t.Errorf("an installation where nothing was ever done (-want +got):\n%s", diff)
	}
}

func TestReadDamaged(t *testing.T) {
	const secret = "do-not-show-me"
	uri := mongotest.Start(t) + "?maxPoolSize=1"
	cases := map[string]struct {
		reason string
		spoil  func(p *plugin)
		place  onapstore.Place
		text   string // of the message
		lost   bool
	}{
		"DanglingContent": {
			"ONAP writes two documents without a transaction",
			func(p *plugin) { p.drop("rbdef", p.put("rbdef", definition("fw", "1"), "defcontent", secret)) },
			onapstore.Place{Collection: "rbdef", Key: "{rbname: fw, rbversion: 1}", Tag: "defcontent"}, "does not exist", true,
		},
		"DanglingInstance": {
			"a record whose data is gone is told, and hides no other",
			func(p *plugin) { p.drop("rbdef", p.put("rbdef", instance("lost_cat"), "instance", bson.D{})) },
			onapstore.Place{Collection: "rbdef", Key: "{id: lost_cat}", Tag: "instance"}, "does not exist", true,
		},
		"WrongType": {
			"the field is named, and its value is not",
			func(p *plugin) {
				p.put("rbdef", instance("odd_cat"), "instance", bson.D{{Key: "request", Value: bson.D{{Key: "overridevalues", Value: secret}}}})
			},
			onapstore.Place{Collection: "rbdef", Key: "{id: odd_cat}", Tag: "instance"}, "request.overridevalues", true,
		},
		"Kubeconfig": {
			"of a kubeconfig nothing is told",
			func(p *plugin) {
				p.put("connection", bson.D{{Key: "cloudregion", Value: "west"}}, "metadata", bson.D{{Key: "kubeconfig", Value: secret + "!"}})
			},
			onapstore.Place{Collection: "connection", Key: "{cloudregion: west}", Tag: "metadata"}, "not base64", true,
		},
		"LeftOver": {
			"a record without any data is nothing that is missed",
			func(p *plugin) { p.refer("rbdef", definition("old", "1"), "gone", bson.NewObjectID()) },
			onapstore.Place{Collection: "rbdef", Key: "{rbname: old, rbversion: 1}"}, "left over", false,
		},
		"Twice": {
			"ONAP makes no index that would prevent it",
			func(p *plugin) {
				_, err := p.db.Collection("rbdef").InsertOne(p.t.Context(), bson.D{{Key: "key", Value: definition("fw", "1")}})
				if err != nil {
					p.t.Fatal(err)
				}
			},
			onapstore.Place{Collection: "rbdef", Key: "{rbname: fw, rbversion: 1}"}, "several", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pluginIn(t, uri, name)
			p.fill()
			tc.spoil(p)
			_, got := p.read()
			if len(got.Findings) != 1 {
				t.Fatalf("%s: findings %v, want one", tc.reason, got.Findings)
			}
			f := got.Findings[0]
			if diff := cmp.Diff(tc.place, f.Place); diff != "" || !strings.Contains(f.Message, tc.text) || f.Lost != tc.lost {
				t.Errorf("%s: %+v, want %q, lost %t; place (-want +got):\n%s", tc.reason, f, tc.text, tc.lost, diff)
			}
			if strings.Contains(f.Message+f.Place.String(), secret) {
				t.Errorf("a value is told: %+v", f)
			}
			if len(got.Instances) != 1 || len(got.Definitions) != 1 || len(got.Connections) != 1 {
				t.Errorf("%s: what is whole was not read: %+v", tc.reason, got)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	const secret = "pass:word"
	cases := map[string]struct {
		reason string
		uri    string
		kind   nf.Kind
	}{
		"NoURI":   {"what is no URI is not repeated", "mongodb://user:" + secret + "@host", nf.Invalid},
		"Nobody":  {"where nobody answers, it is told who does not", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50", nf.Unreachable},
		"NoMongo": {"another database is none", "etcd://host", nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := onapstore.Open(t.Context(), onapstore.Config{Mongo: nf.Secret(tc.uri)})
			if err == nil || nf.KindOf(err) != tc.kind || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.kind)
			}
		})
	}
}

func TestContentFails(t *testing.T) {
	p := pluginIn(t, mongotest.Start(t)+"?maxPoolSize=1", "k8splugin")
	p.fill()
	id := p.put("rbdef", definition("fw", "1"), "defcontent", "%%%")
	s, got := p.read()
	if _, err := s.Content(t.Context(), got.Definitions[0].Content); nf.KindOf(err) != nf.Invalid {
		t.Errorf("what is not base64: %v", err)
	}
	p.drop("rbdef", id)
	if _, err := s.Content(t.Context(), got.Definitions[0].Content); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what is gone meanwhile: %v", err)
	}
}
