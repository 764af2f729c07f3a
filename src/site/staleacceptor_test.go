package site_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// lateKV is a store that applies one write late: the first one whose key has the
// prefix. The caller of the write gets nf.Unreachable.
type lateKV struct {
	store.KV

	mu     sync.Mutex
	prefix string
	arrive func(context.Context) error // applies the write; nil: there was none
}

func (k *lateKV) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.arrive != nil || !strings.HasPrefix(key, k.prefix) {
		return k.KV.Put(ctx, key, value, expected)
	}
	k.arrive = func(ctx context.Context) error {
		_, err := k.KV.Put(ctx, key, value, expected)
		return err
	}
	return 0, nf.E(nf.Unreachable, "use", "the store", errors.New("it does not respond in time"))
}

// TestLateWrites has the store apply a write of a request after the request was
// given up. The site is free some time later, and nothing else is left.
func TestLateWrites(t *testing.T) {
	create := func(ctx context.Context, s *site.Sites) error {
		_, err := s.Create(ctx, request())
		return err
	}
	change := func(ctx context.Context, s *site.Sites) error {
		_, err := s.Change(ctx, "edge", nf.SiteChangeRequest{
			Add:     []nf.SiteHost{host("n3", nf.Worker)},
			Secrets: func(m *nf.SiteSecrets) error { m.Password = nf.Secret("hunter23"); return nil },
		})
		return err
	}
	remove := func(ctx context.Context, s *site.Sites) error {
		_, err := s.Remove(ctx, "edge", nf.SiteRemoveRequest{})
		return err
	}
	built := []string{"operations", "operationsin", "operationsof", "sites", "sitesecrets"}
	cases := map[string]struct {
		reason  string
		built   bool // the site is there already
		request func(ctx context.Context, s *site.Sites) error
		delayed string       // prefix of the key of the late write
		state   nf.SiteState // of the site some time later; empty: there is no site
		left    []string     // tables, once for each record
	}{
		"CreateEntry":     {"an entry without an operation", false, create, "operationsof/", "", nil},
		"CreateScope":     {"an entry without an operation", false, create, "operationsin/", "", nil},
		"CreateOperation": {"an operation that no request waits for", false, create, "operations/", "", nil},
		"CreateSecrets":   {"secrets without an operation", false, create, "sitesecrets/", "", nil},
		"CreateLock":      {"a site whose operation does not exist", false, create, "sites/", nf.SiteFailed, []string{"sites"}},
		"ChangeEntry":     {"an entry without an operation", true, change, "operationsof/", nf.SiteReady, built},
		"ChangeScope":     {"an entry without an operation", true, change, "operationsin/", nf.SiteReady, built},
		"ChangeOperation": {"an operation that no request waits for", true, change, "operations/", nf.SiteReady, built},
		"ChangeSecrets":   {"secrets without an operation", true, change, "sitesecrets/", nf.SiteReady, built},
		"ChangeLock":      {"the site has its former secrets again", true, change, "sites/", nf.SiteFailed, built},
		"RemoveLock":      {"the site keeps its secrets", true, remove, "sites/", nf.SiteFailed, built},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				if tc.built {
					s, stop := w.start(t)
					build(t, s)
					stop()
				}
				late := &lateKV{KV: w.kv, prefix: tc.delayed}
				s, _ := w.start(t, func(c *config) { c.KV = late })
				wantKind(t, tc.reason, tc.request(t.Context(), s), nf.Unreachable)
				synctest.Wait()
				if err := late.arrive(t.Context()); err != nil {
					t.Fatalf("%s: the write cannot arrive late: %v", tc.reason, err)
				}
				<-time.After(time.Hour)
				in, err := s.Site(t.Context(), "edge")
				if nf.IgnoreNotFound(err) != nil || in.State != tc.state || in.Busy != "" || in.Claim != "" {
					t.Errorf("%s: the site is %q, busy with %q: %v", tc.reason, in.State, in.Busy, err)
				}
				if diff := cmp.Diff(tc.left, w.tables(t)); diff != "" {
					t.Errorf("%s: what is left differs (-want +got):\n%s", tc.reason, diff)
				}
				w.removable(t, s, tc.state != "")
			})
		})
	}
}

// tables returns the tables of the records of sites and of the list of work, once
// for each record.
func (w *world) tables(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, key := range keys(t, w, "") {
		table, _, _ := strings.Cut(key, "/")
		if table != "operationlogs" && table != "replicas" {
			out = append(out, table)
		}
	}
	return out
}

// removable creates the site unless it exists, and removes it.
func (w *world) removable(t *testing.T, s *site.Sites, exists bool) {
	t.Helper()
	if !exists {
		build(t, s)
	}
	op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
	must(t, err)
	if op, _ = end(t, s, op); op.State != nf.Succeeded {
		t.Errorf("the removal is %s: %+v", op.State, op.Failure)
	}
	for _, job := range w.started() {
		if string(job.Secrets.Password) != "hunter22" {
			t.Errorf("the hosts are changed with the password %q", job.Secrets.Password)
		}
	}
	if left := keys(t, w, "sitesecrets/"); len(left) > 0 {
		t.Errorf("after the removal remain the secrets %v", left)
	}
}

// TestLostClaim deletes the claim of a running operation. Another replica ends
// the operation.
func TestLostClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.play = func(ctx context.Context, _ site.Job, _ teller) error { <-ctx.Done(); return ctx.Err() }
		s, stop := w.start(t)
		op, err := s.Create(t.Context(), request())
		must(t, err)
		synctest.Wait()
		stop()
		w.play = nil
		must(t, w.kv.Delete(t.Context(), "claims/"+op.ID, store.Any))
		next, _ := w.start(t)
		<-time.After(time.Hour)
		if op, err = next.Operations().Operation(t.Context(), "", op.ID); err != nil || op.State != nf.Succeeded {
			t.Errorf("the operation is %s: %+v, %v", op.State, op.Failure, err)
		}
	})
}

// TestSoleProcess starts the only process of a store with a site that is locked
// by an operation that has ended. The site is free after the first search for stale
// records.
func TestSoleProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, stop := w.start(t)
		build(t, s)
		stop()
		_, err := store.NewTable[nf.Site](w.kv, "sites/", "site").Update(t.Context(), "edge", func(in *nf.Site) error {
			in.Busy, in.Claim = in.Last, "token"
			return nil
		})
		must(t, err)
		again, _ := w.start(t, func(c *config) { c.Work.Sole = true })
		<-time.After(2 * time.Minute)
		w.removable(t, again, true)
	})
}
