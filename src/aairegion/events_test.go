package aairegion_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

// receive is the Events of an importer.
func (w *world) receive(ctx context.Context, handle func(context.Context, []byte) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-w.events:
			if err := handle(ctx, event); err != nil {
				return err
			}
		}
	}
}

// forget drops the events that are still queued.
func (w *world) forget() {
	for len(w.events) > 0 {
		<-w.events
	}
}

// TestEvents changes A&AI, and compares what the importer makes of its events long before
// the next period.
func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		all      bool
		change   func(w *world)
		results  string
		token    string // of r1 afterwards
		requests int
	}{
		{"other credentials", false, func(w *world) { w.rotate("r1", secondToken) }, "[updated]", secondToken, 2},
		{"twice the same", false, func(w *world) {
			w.rotate("r1", secondToken)
			w.events <- []byte(`{"event-header":{"entity-type":"esr-system-info","entity-link":"/aai/v30` + regionPath + `k8s/r1/esr-system-info-list/esr-system-info/1"}}`)
		}, "[updated]", secondToken, 4},
		{"a new region that no request names", false, func(w *world) { w.region("k8s", "r2", firstToken) }, "[]", firstToken, 0},
		{"a new region, if all are imported", true, func(w *world) {
			w.as("PUT", regionPath+"k8s/r2", fmt.Sprintf(`{"cloud-type":"k8s","esr-system-info-list":{"esr-system-info":[{"esr-system-info-id":"1","user-name":"kubeconfig","password":%q,"system-type":"VIM","service-url":%q}]}}`, firstToken, server))
		}, "[imported]", firstToken, 5},
		{"a region of another owner with the same id", true, func(w *world) { w.region("other", "r1", secondToken) }, "[]", firstToken, 0},
		{"a region that is no cluster", true, func(w *world) { w.as("PUT", regionPath+"k8s/vm", `{"cloud-type":"openstack"}`) }, "[]", firstToken, 2},
		{"a removed region", false, func(w *world) { w.remove("r1") }, "[vanished]", firstToken, 2},
		{"another object within the region", true, func(w *world) { w.as("PUT", regionPath+"k8s/r1/tenants/tenant/t", `{"tenant-name":"t"}`) }, "[]", firstToken, 0},
		{"no event", true, func(w *world) { w.events <- []byte(secret) }, "[]", firstToken, 0},
		{"A&AI does not respond", false, func(w *world) {
			w.simulator.Script(simulator.Fault{Method: "GET", Status: 503, Times: -1}) // before the event
			w.rotate("r1", secondToken)
		}, "[failed]", firstToken, 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.region("k8s", "r1", firstToken)
				var log bytes.Buffer
				i := w.importer(func(cfg *aairegion.Config) {
					cfg.Events, cfg.Source, cfg.All, cfg.Period = w.receive, "k8splugin", tc.all, time.Hour
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				if _, err := i.Find(w.Context(), "k8s", "r1"); err != nil {
					t.Fatal(err)
				}
				w.forget()
				end := w.run(i)
				w.passes(time.Minute)
				w.took()
				w.simulator.Journal()
				tc.change(w)
				w.simulator.Journal()
				w.passes(time.Minute)
				if got := w.took(); got != tc.results {
					t.Errorf("results %s, want %s", got, tc.results)
				}
				if n := len(w.simulator.Journal()); n > tc.requests {
					t.Errorf("%d requests to A&AI, want at most %d", n, tc.requests)
				}
				w.wantToken(tc.reason, "r1", tc.token)
				end()
				if strings.Contains(log.String(), secret) {
					t.Errorf("the log quotes a message:\n%s", log.String())
				}
			})
		})
	}
}

// TestOwnEvents checks that the service does not follow itself.
func TestOwnEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		i := w.importer(func(cfg *aairegion.Config) { cfg.Events, cfg.Source, cfg.Period = w.receive, "test", time.Hour })
		if _, err := i.Find(w.Context(), "k8s", "r1"); err != nil {
			t.Fatal(err)
		}
		defer w.run(i)()
		w.passes(time.Minute)
		w.rotate("r1", secondToken)
		w.passes(time.Minute)
		w.wantToken("an event of the service's own name", "r1", firstToken)
	})
}

// TestConnectionOfEvents checks that events are followed again after the connection has
// ended, with longer and longer pauses.
func TestConnectionOfEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		var attempts atomic.Int64
		i := w.importer(func(cfg *aairegion.Config) {
			cfg.Period = 2 * time.Hour
			cfg.Events = func(ctx context.Context, handle func(context.Context, []byte) error) error {
				if attempts.Add(1) < 10 {
					return errors.New("the broker is down")
				}
				return w.receive(ctx, handle)
			}
		})
		if _, err := i.Find(w.Context(), "k8s", "r1"); err != nil {
			t.Fatal(err)
		}
		w.forget()
		defer w.run(i)()
		w.passes(time.Minute)
		w.rotate("r1", secondToken)
		w.passes(2 * time.Minute)
		if n := attempts.Load(); n < 6 || n > 8 {
			t.Errorf("%d attempts in 3 minutes, want 6 to 8", n)
		}
		w.passes(30 * time.Minute)
		w.wantToken("the broker is back", "r1", secondToken)
	})
}
