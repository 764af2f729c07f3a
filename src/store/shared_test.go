package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

type room struct {
	Name     string `json:"name"`
	Removing string `json:"removing,omitempty"`
}

// ID implements store.Shared.
func (r room) ID() string { return r.Name }

func rooms(kv store.KV) store.SharedTable[room] {
	return store.NewSharedTable(kv, "rooms/", "room", func(r *room) *string { return &r.Removing })
}

// house contains the rooms that a SharedTable manages.
type house struct {
	mu     sync.Mutex
	there  bool
	inside map[string]bool // users that may be in the room
	broken string
}

func (h *house) enter(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.there, h.inside[user] = true, true
}

func (h *house) leave(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inside, user)
}

// remove takes the room away, which must be empty.
func (h *house) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user := range h.inside {
		h.broken = "the room was removed under " + user
	}
	h.there = false
}

// visit enters the room, until it may, and leaves it. Both are repeated by
// another process when the first one died.
type visitor struct {
	user  string
	table store.SharedTable[room]
	house *house
	pass  func() error
}

func (v visitor) enter(ctx context.Context) error {
	const tries = 3 // the process that removes the room may have crashed
	var err error
	for range tries {
		if _, err = v.table.Enter(ctx, instance(v.user), room{Name: "x"}); err == nil {
			v.house.enter(v.user)
			return nil
		}
		if nf.KindOf(err) != nf.Busy {
			return err
		}
	}
	return err
}

func (v visitor) leave(ctx context.Context) error {
	v.house.leave(v.user)
	return v.table.Leave(ctx, "x", leaver(v.user, ""), func(context.Context) error {
		if err := v.pass(); err != nil {
			return err
		}
		v.house.remove()
		return nil
	})
}

// TestBusyNamesNoUser checks that the error for an object that is being removed
// does not name the user that removes it: another user may not know its id.
func TestBusyNamesNoUser(t *testing.T) {
	t.Parallel()
	table := rooms(memory.New())
	if err := table.Records().Put(t.Context(), "x", room{Name: "x", Removing: instance("vnf-b").String()}); err != nil {
		t.Fatal(err)
	}
	_, err := table.Enter(t.Context(), instance("vnf-a"), room{Name: "x"})
	if nf.KindOf(err) != nf.Busy || strings.Contains(err.Error(), "vnf-b") {
		t.Errorf("the error is %v, want Busy without the id vnf-b", err)
	}
}

// leaver returns an attempt that no other one replaces.
func leaver(user, token string) store.Leaver {
	return store.Leaver{User: instance(user), Token: token, Held: func(context.Context) error { return nil }}
}

// TestStalledRemoval has an attempt stall while it removes a room, or before, and another
// attempt of the same user take over: the first one must not end the removal of the second.
func TestStalledRemoval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		early  bool // it stalls before it marks the room
	}{
		"Removing": {"its mark was replaced", false},
		"Before":   {"it must not replace the mark of the second", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, table := t.Context(), rooms(memory.New())
			if _, err := table.Enter(ctx, instance("a"), room{Name: "x"}); err != nil {
				t.Fatal(err)
			}
			stalled, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			var once sync.Once
			stall := func(context.Context) error {
				once.Do(func() {
					close(stalled)
					<-proceed
				})
				return errDead
			}
			first := leaver("a", "first")
			if tc.early {
				first.Held = stall
			}
			go func() { ended <- table.Leave(ctx, "x", first, stall) }()
			<-stalled
			err := table.Leave(ctx, "x", leaver("a", "second"), func(ctx context.Context) error {
				close(proceed)
				if err := <-ended; !errors.Is(err, errDead) {
					t.Errorf("%s: the first attempt: %v", tc.reason, err)
				}
				if _, err := table.Enter(ctx, instance("b"), room{Name: "x"}); nf.KindOf(err) != nf.Busy {
					t.Errorf("%s: another user enters while the second attempt removes the room: %v", tc.reason, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := table.Records().Get(ctx, "x"); nf.KindOf(err) != nf.NotFound {
				t.Errorf("%s: the removed room is there: %v", tc.reason, err)
			}
		})
	}
}

// TestEnterAfterRemoval has a user enter a room again whose removal it has not completed.
func TestEnterAfterRemoval(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), rooms(memory.New())
	if err := table.Records().Put(ctx, "x", room{Name: "x", Removing: "vnf_instance/a/token"}); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Enter(ctx, instance("b"), room{Name: "x"}); nf.KindOf(err) != nf.Busy {
		t.Errorf("another user: %v", err)
	}
	for _, user := range []string{"a", "b"} {
		if _, err := table.Enter(ctx, instance(user), room{Name: "x"}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// TestAbandoned checks the sweep of a kind: a record with a user of another kind,
// or whose removal another kind's user has begun, is not abandoned.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		holder   nf.Subject // without a kind: none
		removing string
		busy     bool
		record   bool   // it stays
		mark     string // its mark, if it stays
	}{
		"Unused":         {reason: "it has no user"},
		"Busy":           {reason: "an operation is about to enter it", busy: true, record: true},
		"Used":           {reason: "a user of another kind has it", holder: network("a").Subject, record: true},
		"Removed":        {reason: "its last user died", removing: "vnf_instance/dead"},
		"Removing":       {reason: "its last user removes it", removing: "vnf_instance/a/token", busy: true, record: true, mark: "vnf_instance/a/token"},
		"Idle":           {reason: "its last user has begun to remove it, and does nothing now", removing: "vnf_instance/a/token", record: true},
		"DeadToken":      {reason: "an attempt of a user that died", removing: "vnf_instance/dead/token"},
		"OtherRemoving":  {reason: "the user that removes it is of another kind", removing: "network/dead", record: true, mark: "network/dead"},
		"RemovedAndUsed": {reason: "the user that removed it died, and another one wants it", holder: network("a").Subject, removing: "vnf_instance/dead", record: true},
		"Sweep":          {reason: "a sweep died", removing: "vnf_instance"},
		"SweepAndUsed":   {reason: "a sweep died, and a user wants it", holder: network("a").Subject, removing: "vnf_instance", record: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, kv := t.Context(), memory.New()
			table := rooms(kv)
			if tc.holder.Kind != "" {
				if _, err := table.Enter(ctx, tc.holder, room{Name: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.Records().Put(ctx, "x", room{Name: "x", Removing: tc.removing}); err != nil {
				t.Fatal(err)
			}
			alive := map[string]bool{"a": true}
			_, held, err := store.AbandonedHolds(ctx, kv, nf.InstanceSubject, func(h store.Hold) bool { return alive[h.Holder.Subject.ID] }, nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := table.Abandoned(ctx, nf.InstanceSubject, held, alive, map[string]bool{"x": tc.busy})
			if err != nil {
				t.Fatal(err)
			}
			for what, remove := range found {
				if err := remove(ctx); err != nil {
					t.Errorf("%s: %s: %v", tc.reason, what, err)
				}
			}
			got, err := table.Records().Get(ctx, "x")
			if (err == nil) != tc.record || got.Removing != tc.mark {
				t.Errorf("%s: its record is %+v, %v", tc.reason, got, err)
			}
		})
	}
}
