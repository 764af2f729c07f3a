package aai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const region = "/aai/v30/cloud-infrastructure/cloud-regions/cloud-region/"

func event(kind, link string) string {
	return `{"cambria.partition":"AAI","event-header":{"source-name":"ESR","action":"UPDATE","entity-type":"` + kind + `","top-entity-type":"cloud-region","entity-link":"` + link +
		`"},"entity":{"esr-system-info-list":{"esr-system-info":[{"password":"s3cret"}]}}}`
}

func TestParseEvent(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		message string
		want    aai.Event // zero: nf.Invalid
	}{
		"region":     {"a region has an owner and an id", event("cloud-region", region+"k8s/r1"), aai.Event{Source: "ESR", Type: "cloud-region", Owner: "k8s", Region: "r1"}},
		"system":     {"its systems are within it", event("esr-system-info", region+"k8s/r1/esr-system-info-list/esr-system-info/e"), aai.Event{Source: "ESR", Type: "esr-system-info", Owner: "k8s", Region: "r1"}},
		"host":       {"a link may have a host", event("cloud-region", "https://aai:8443"+region+"k8s/r1"), aai.Event{Source: "ESR", Type: "cloud-region", Owner: "k8s", Region: "r1"}},
		"escaped":    {"keys are percent-encoded", event("cloud-region", region+"k%2F8s/r%201"), aai.Event{Source: "ESR", Type: "cloud-region", Owner: "k/8s", Region: "r 1"}},
		"wrong keys": {"what is not, names no region", event("cloud-region", region+"k8s/%zz"), aai.Event{Source: "ESR", Type: "cloud-region"}},
		"one key":    {"a region has two keys", event("cloud-region", region+"k8s"), aai.Event{Source: "ESR", Type: "cloud-region"}},
		"other":      {"other objects are not within a region", event("generic-vnf", "/aai/v30/network/generic-vnfs/generic-vnf/k8s/r1"), aai.Event{Source: "ESR", Type: "generic-vnf"}},
		"no JSON":    {"a message is JSON", "s3cret", aai.Event{}},
		"no header":  {"a message has a header", `{"entity":{"password":"s3cret"}}`, aai.Event{}},
		"list":       {"a message is an object", `["s3cret"]`, aai.Event{}},
		"wrong type": {"a link is a text", `{"event-header":{"entity-type":"s3cret","entity-link":["s3cret"]}}`, aai.Event{}},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := aai.ParseEvent([]byte(tt.message))
			if diff := cmp.Diff(tt.want, got); diff != "" || (nf.KindOf(err) == nf.Invalid) != (tt.want == aai.Event{}) {
				t.Errorf("%s: error %v (-want +got):\n%s", tt.reason, err, diff)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error quotes the message: %v", err)
			}
		})
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(event("cloud-region", region+"k8s/r1")))
	f.Add([]byte(`{"event-header":null}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		e, err := aai.ParseEvent(message)
		if (err == nil) != (e.Type != "") || (e.Owner == "") != (e.Region == "") {
			t.Errorf("%+v, %v: an event has a type, and both keys of a region or none", e, err)
		}
	})
}
