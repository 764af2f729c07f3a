package lease_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

const lasts = 10 * time.Second

func group(kv store.KV) *lease.Group {
	return lease.NewGroup(kv, "replicas/", "replica", lasts, time.Now)
}

func join(t *testing.T, g *lease.Group, id string) *lease.Member {
	t.Helper()
	m, err := g.Join(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func renew(t *testing.T, m *lease.Member) {
	t.Helper()
	if err := m.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// want compares a survey with who is to be alive, and whose lease is to end now.
func want(t *testing.T, reason string, m *lease.Member, alive, ended string) {
	t.Helper()
	living, over, err := m.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(living) + "; " + names(over); got != alive+"; "+ended {
		t.Errorf("%s: it sees %q, want %q", reason, got, alive+"; "+ended)
	}
}

func names(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), " ") }

func TestLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(memory.New())
		a, b := join(t, g, "a"), join(t, g, "b")
		want(t, "who has joined is alive", a, "a b", "")
		<-time.After(lasts - 1)
		want(t, "a lease lasts for its whole time", a, "a b", "")
		renew(t, b)
		<-time.After(1)
		want(t, "the beat has moved", a, "a b", "")
		<-time.After(lasts - 1)
		c := join(t, g, "c")
		want(t, "one who has just come takes nobody for dead", c, "a b c", "")
		want(t, "the time begins when the move was seen", a, "a b c", "")
		<-time.After(1)
		want(t, "the beat has stood still", a, "a c", "b")
		want(t, "a lease ends once", a, "a c", "")
		if err := b.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
			t.Errorf("it renews a lease that is over: %v", err)
		}
		if there, err := g.Has(t.Context(), "b"); there || err != nil {
			t.Errorf("Has: %v, %v", there, err)
		}
		if err := b.Leave(t.Context()); err != nil {
			t.Errorf("it leaves what is over: %v", err)
		}
	})
}

// TestLastMoment has a member move when another is about to end its lease.
func TestLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		b := join(t, group(kv), "b")
		a := join(t, group(storetest.Failing{KV: kv, Fail: func(method, key string) error {
			if method == "Delete" && key == "replicas/b" {
				renew(t, b)
			}
			return nil
		}}), "a")
		want(t, "both have joined", a, "a b", "")
		<-time.After(lasts)
		want(t, "it moved at the last moment", a, "a b", "")
		renew(t, b)
	})
}

func TestLeave(t *testing.T) {
	g := group(memory.New())
	a, b := join(t, g, "a"), join(t, g, "b")
	if there, err := g.Has(t.Context(), b.ID()); !there || err != nil {
		t.Errorf("Has: %v, %v", there, err)
	}
	if err := b.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, "nobody waits for who has left", a, "a", "")
}

func TestExpel(t *testing.T) {
	g := group(memory.New())
	join(t, g, "dead")
	join(t, g, "gone")
	if err := join(t, g, "a").Expel(t.Context()); err != nil {
		t.Error(err)
	}
	for id, there := range map[string]bool{"dead": false, "gone": false, "a": true} {
		if got, err := g.Has(t.Context(), id); got != there || err != nil {
			t.Errorf("%s is there: %v, %v", id, got, err)
		}
	}
}

// TestStoreAway: no error is taken for the end of a lease.
func TestStoreAway(t *testing.T) {
	away := false
	g := group(storetest.Failing{KV: memory.New(), Fail: func(string, string) error {
		if away {
			return nf.E(nf.Unreachable, "ask", "the store", nil)
		}
		return nil
	}})
	a := join(t, g, "a")
	away = true
	_, joinErr := g.Join(t.Context(), "b")
	_, hasErr := g.Has(t.Context(), "a")
	_, _, surveyErr := a.Survey(t.Context())
	for call, err := range map[string]error{
		"Join": joinErr, "Has": hasErr, "Survey": surveyErr, "Renew": a.Renew(t.Context()), "Leave": a.Leave(t.Context()), "Expel": a.Expel(t.Context()),
	} {
		if nf.KindOf(err) != nf.Unreachable {
			t.Errorf("%s: %v, want unreachable", call, err)
		}
	}
	away = false
	want(t, "nothing has become of it", a, "a", "")
}
