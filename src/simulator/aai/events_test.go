package aai_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// TestEvents compares the events of requests.
func TestEvents(t *testing.T) {
	t.Parallel()
	const esr = "{region}/esr-system-info-list/esr-system-info/e"
	cases := map[string]struct {
		reason string
		steps  []string
		want   []string // "ACTION TYPE of TOP entity"
	}{
		"create": {"the top object has the path to the one that changed", []string{`PUT {vserver}/a {v} 201`}, []string{
			`CREATE vserver of cloud-region {"cloud-owner":"k8s","cloud-region-id":"r1","tenants":{"tenant":[{"tenant-id":"t1","vservers":{"vserver":[{"in-maint":false,"is-closed-loop-disabled":false,"vserver-id":"a","vserver-name":"a","vserver-selflink":"x"}]}}]}}`,
		}},
		"secret": {"credentials are in the clear", []string{`PUT ` + esr + ` {"user-name":"u","password":"s3cret","system-type":"VIM"} 201`}, []string{
			`CREATE esr-system-info of cloud-region {"cloud-owner":"k8s","cloud-region-id":"r1","esr-system-info-list":{"esr-system-info":[{"esr-system-info-id":"e","password":"s3cret","system-type":"VIM","user-name":"u"}]}}`,
		}},
		"delete": {"a deletion has the object as it was", []string{`PUT {tenant}2 {"tenant-name":"x"} 201`, `DELETE {tenant}2?resource-version={version {tenant}2} 204`}, []string{
			`CREATE tenant of cloud-region {"cloud-owner":"k8s","cloud-region-id":"r1","tenants":{"tenant":[{"tenant-id":"t12","tenant-name":"x"}]}}`,
			`DELETE tenant of cloud-region {"cloud-owner":"k8s","cloud-region-id":"r1","tenants":{"tenant":[{"tenant-id":"t12","tenant-name":"x"}]}}`,
		}},
		"edge":     {"an edge changes both ends", []string{`PUT {resource}/a {a} 201`, `PUT {resource}/a/{edge} {"related-link":"{vnf}"} 200`}, []string{"CREATE k8s-resource of cloud-region", "UPDATE k8s-resource of cloud-region", "UPDATE generic-vnf of generic-vnf"}},
		"rejected": {"what does not happen has no event", []string{`PUT {resource}/a {"name":"a"} 400 5.2.3000`}, nil},
		"read":     {"nor has a read", []string{`GET {tenant} 200`}, nil},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			published := false
			c := newClient(t, aai.Config{Publish: func(event []byte) {
				if published {
					got = append(got, summary(t, event))
				}
			}})
			published = true
			for _, step := range tt.steps {
				text, want := splitStep(step)
				c.want(tt.reason, text, want)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%s: %d events, want %d: %q", tt.reason, len(got), len(tt.want), got)
			}
			for i, want := range tt.want {
				if len(want) < len(got[i]) { // without the entity
					got[i] = got[i][:len(want)]
				}
				if diff := cmp.Diff(want, got[i]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
				}
			}
		})
	}
}

// summary returns what matters of an event, without resource versions.
func summary(t *testing.T, message []byte) string {
	t.Helper()
	var event struct {
		Header struct {
			Source string `json:"source-name"`
			Action string `json:"action"`
			Type   string `json:"entity-type"`
			Top    string `json:"top-entity-type"`
		} `json:"event-header"`
		Entity map[string]any `json:"entity"`
	}
	if err := json.Unmarshal(message, &event); err != nil {
		t.Fatal(err)
	}
	if event.Header.Source != "test" {
		t.Errorf("the source is %q, want the client", event.Header.Source)
	}
	withoutVersions(event.Entity)
	entity, err := json.Marshal(event.Entity)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s of %s %s", event.Header.Action, event.Header.Type, event.Header.Top, entity)
}

func withoutVersions(doc any) {
	switch doc := doc.(type) {
	case map[string]any:
		delete(doc, "resource-version")
		for _, member := range doc {
			withoutVersions(member)
		}
	case []any:
		for _, member := range doc {
			withoutVersions(member)
		}
	}
}
