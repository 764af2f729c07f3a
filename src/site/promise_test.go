package site_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func TestRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.regions["taken"] = nf.Region{ID: "taken"}
		s, _ := w.start(t)
		build(t, s)
		cases := map[string]struct {
			reason string
			edit   func(*nf.SiteRequest)
			kind   nf.Kind
			field  string
		}{
			"SameSite":      {"an id is one site's", func(*nf.SiteRequest) {}, nf.Exists, "site_id"},
			"SameRegion":    {"a region is one site's", func(r *nf.SiteRequest) { r.Site.ID = "other" }, nf.Exists, "cloud_region_id"},
			"ForeignRegion": {"a region that was registered before is somebody else's", func(r *nf.SiteRequest) { r.Site.ID, r.Site.Region = "other", "taken" }, nf.Exists, "cloud_region_id"},
			"NoKey":         {"a host has a key", func(r *nf.SiteRequest) { r.Site.Hosts[0].Key = "" }, nf.Invalid, "hosts[0].host_key"},
			"Option":        {"an address is no option of ssh", func(r *nf.SiteRequest) { r.Site.Hosts[0].Address = "-oProxyCommand=x" }, nf.Invalid, "hosts[0].address"},
			"Template":      {"a name is no template", func(r *nf.SiteRequest) { r.Site.Hosts[0].User = "{{ x }}" }, nf.Invalid, "hosts[0].user"},
			"Ansible":       {"how Ansible connects is not the user's", func(r *nf.SiteRequest) { r.Site.Parameters = map[string]any{"ansible_connection": "local"} }, nf.Invalid, "parameters"},
			"NoCredential":  {"somebody must be let in", func(r *nf.SiteRequest) { r.Secrets.Password = nil }, nf.Invalid, "credential"},
			"NoPlane":       {"a cluster has a control plane", func(r *nf.SiteRequest) { r.Site.Hosts = r.Site.Hosts[1:] }, nf.Invalid, "hosts"},
			"Script":        {"a script is the script driver's", func(r *nf.SiteRequest) { r.Secrets.Script = nf.Secret("x") }, nf.Invalid, "script"},
		}
		for name, tc := range cases {
			_, err := s.Create(t.Context(), request(tc.edit))
			wantKind(t, name+": "+tc.reason, err, tc.kind)
			if !slices.ContainsFunc(nf.ViolationsOf(err), func(v nf.Violation) bool { return v.Field == tc.field }) {
				t.Errorf("%s: %s: %v does not name %s", name, tc.reason, err, tc.field)
			}
		}
		if ops := keys(t, w, "operations/"); len(ops) != 1 {
			t.Errorf("what was refused has left something: %v", ops)
		}
		_, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{Remove: []string{"n1"}})
		wantKind(t, "the control plane stays", err, nf.Invalid)
		_, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Add: []nf.SiteHost{host("n2", nf.Worker)}})
		wantKind(t, "a host is there once", err, nf.Invalid)
		_, err = s.Change(t.Context(), "nowhere", nf.SiteChangeRequest{})
		wantKind(t, "what is not there cannot be changed", err, nf.NotFound)
	})
}

func TestRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		key := nf.RequestKey{Client: "user:ann", Key: "k1", Digest: "sha256:a"}
		first, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Key = key }))
		must(t, err)
		end(t, s, first)
		again, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Key = key }))
		must(t, err)
		if again.ID != first.ID || len(w.started()) != 1 {
			t.Errorf("the same request began %s and %s", first.ID, again.ID)
		}
		key.Digest = "sha256:b"
		_, err = s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Key = key }))
		wantKind(t, "another request under the same key", err, nf.Conflict)
	})
}

// TestSecrecy: no secret is in a visible record or in a log.
func TestSecrecy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		var log strings.Builder
		w.play = func(_ context.Context, _ site.Job, tell teller) error {
			tell(site.Event{Kubeconfig: nf.Secret(kubeconfig)})
			for _, secret := range secrets() {
				tell(site.Event{LogEntry: nf.LogEntry{Kind: nf.EventChanged, Task: "with " + secret, Host: "n1", Message: "it is " + secret + "!"}})
			}
			return fmt.Errorf("it failed with %s", strings.Join(secrets(), " and "))
		}
		s, stop := w.start(t, func(c *config) { c.Work.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
		op, err := s.Create(t.Context(), request())
		must(t, err)
		op, events := end(t, s, op)
		in, err := s.Site(t.Context(), "edge")
		must(t, err)
		for what, v := range map[string]any{"the operation": op, "the site": in, "the events": events} {
			text, err := json.Marshal(v)
			must(t, err)
			wantNoSecret(t, what, string(text))
		}
		if len(events) < 3 || !strings.Contains(events[len(events)-1].Message, nf.Masked) {
			t.Errorf("the events are %+v", events)
		}
		stop()
		wantNoSecret(t, "the log", log.String())
		for e, err := range w.kv.List(t.Context(), "site", "") {
			must(t, err)
			if !strings.HasPrefix(e.Key, "sitesecrets/") {
				wantNoSecret(t, "the record "+e.Key, string(e.Value))
			}
		}
	})
}

// TestEndWhileSwept has an operation end at any moment of a scan for stale
// records. The operation stays as it is.
func TestEndWhileSwept(t *testing.T) {
	// The scans are every ten minutes, and take some seconds.
	for late := -30 * time.Second; late < 20*time.Second; late += time.Second {
		t.Run(late.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				w.kv = slowStore{w.kv}
				w.play = func(ctx context.Context, _ site.Job, _ teller) error { <-ctx.Done(); return ctx.Err() }
				s, _ := w.start(t, func(c *config) { c.Timeout, c.Work.Lease = 10*time.Minute+late, time.Minute })
				op, err := s.Create(t.Context(), request())
				must(t, err)
				if op, _ = end(t, s, op); op.State != nf.OperationFailed {
					t.Fatalf("the operation is %s", op.State)
				}
				<-time.After(5 * time.Minute)
				now, err := s.Operations().Operation(t.Context(), op.Subject.ID, op.ID)
				if diff := cmp.Diff(op, now); err != nil || diff != "" {
					t.Errorf("an operation that ended during the scan has changed: %v (-want +got):\n%s", err, diff)
				}
				if left := keys(t, w, "claims/"); len(left) > 0 {
					t.Errorf("the list of work has %v", left)
				}
			})
		})
	}
}

// slowStore is a store whose lists take a second after they were read, and whose
// writes take three before they are done.
type slowStore struct{ store.KV }

func (k slowStore) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		type found struct {
			store.Entry
			err error
		}
		var all []found
		for e, err := range k.KV.List(ctx, prefix, start) {
			all = append(all, found{e, err})
		}
		k.wait(time.Second)
		for _, f := range all {
			if !yield(f.Entry, f.err) {
				return
			}
		}
	}
}

func (k slowStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	k.wait(3 * time.Second)
	return k.KV.Put(ctx, key, value, expected)
}

func (slowStore) wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

func TestRetention(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t, func(c *config) { c.Retention = time.Hour })
		build(t, s)
		in, err := s.Site(t.Context(), "edge")
		must(t, err)
		<-time.After(3 * time.Hour)
		if _, err := s.Operations().Operation(t.Context(), "edge", in.Last); err != nil {
			t.Errorf("the operation that the site names has expired: %v", err)
		}
		op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		must(t, err)
		end(t, s, op)
		<-time.After(3 * time.Hour)
		synctest.Wait()
		if left := keys(t, w, "site"); len(left) != 0 {
			t.Errorf("after their time there are still %v", left)
		}
	})
}
