package etcd

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestSilentNode has one node fall silent without closing its connections, as a
// host does whose power is cut: calls continue as soon as that is noticed.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5*time.Second)
	relays := make([]*storetest.Relay, len(c.urls))
	endpoints := make([]string, len(c.urls))
	for i, endpoint := range c.urls {
		relays[i] = storetest.StartRelay(t, strings.TrimPrefix(endpoint, "http://"))
		endpoints[i] = "http://" + relays[i].Addr()
	}
	s := open(t, Config{Endpoints: endpoints})
	s.patience = 2 * answerTime // a machine with other work needs more than the 2 s that are left of it
	if _, err := s.Put(t.Context(), "key", nil, store.Absent); err != nil {
		t.Fatal(err)
	}
	relays[1].Silence()
	for range 2 * len(c.urls) { // each node has its turn
		if _, err := s.Get(t.Context(), "key"); err != nil {
			t.Errorf("a read does not find a node that answers: %v", err)
		}
	}
}

// TestLostAnswer applies writes whose responses are lost: no response says
// that they failed, and they are carried out once.
func TestLostAnswer(t *testing.T) {
	endpoints := startAlone(t, func(*embed.Config) {})
	direct := open(t, Config{Endpoints: endpoints})
	rev, err := direct.Put(t.Context(), "changed", []byte("old"), store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(*Store) error{
		"created": func(s *Store) error { _, err := s.Put(t.Context(), "created", []byte("new"), store.Absent); return err },
		"changed": func(s *Store) error { _, err := s.Put(t.Context(), "changed", []byte("new"), rev); return err },
	}
	for key, call := range calls {
		t.Run(key, func(t *testing.T) {
			r := storetest.StartRelay(t, strings.TrimPrefix(endpoints[0], "http://"))
			s := open(t, Config{Endpoints: []string{"http://" + r.Addr()}})
			r.Mute()
			var lost errgroup.Group
			lost.Go(func() error { return call(s) })
			var e store.Entry
			for string(e.Value) != "new" {
				if e, err = direct.Get(t.Context(), key); err != nil && nf.KindOf(err) != nf.NotFound {
					t.Fatal(err)
				}
			}
			r.HangUp()
			r.Heal() // who tries again is answered
			if err := lost.Wait(); nf.KindOf(err) != nf.Unreachable {
				t.Errorf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
			}
			if now, err := direct.Get(t.Context(), key); err != nil || now.Revision != e.Revision {
				t.Errorf("it is written again: revision %d follows on %d, error %v", now.Revision, e.Revision, err)
			}
		})
	}
}
