package nf

import (
	"context"
	"slices"
	"sync"
)

// Anonymous returns the identity of every caller when access is open.
func Anonymous() Identity { return Identity{Kind: "anonymous", Name: "anonymous"} }

// String returns "kind:name", which is unique.
func (i Identity) String() string { return i.Kind + ":" + i.Name }

// Client returns the owner of the identity's idempotency keys. A token of another project
// makes another request, because the project decides where an object is created.
func (i Identity) Client() string {
	if i.Project == "" {
		return i.String()
	}
	return i.String() + "\x00" + i.Project
}

type identityKey struct{}

// WithIdentity returns a context for requests of an identity.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns the identity that the context acts for. It returns false
// if the caller was not authenticated.
func IdentityOf(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// Trail collects the content of a request's audit entry while the request is
// carried out. Its methods are safe for concurrent use, and do nothing on nil,
// which stands for a request without an entry.
type Trail struct {
	mu         sync.Mutex
	permission Permission
	scope      Scope
	subjects   []string
	operation  string
	hidden     bool
}

type trailKey struct{}

// WithTrail returns a context with a new trail.
func WithTrail(ctx context.Context) (context.Context, *Trail) {
	t := &Trail{}
	return context.WithValue(ctx, trailKey{}, t), t
}

// TrailOf returns the context's trail, or nil.
func TrailOf(ctx context.Context) *Trail {
	t, _ := ctx.Value(trailKey{}).(*Trail)
	return t
}

// Ask notes what a request requires: a permission, its scope and the objects. The last
// permission and scope go into the entry, together with the objects of all calls.
func (t *Trail) Ask(p Permission, s Scope, subjects ...string) {
	t.note(func() {
		t.permission, t.scope = p, s
		t.add(subjects)
	})
}

// Check notes a permission that was checked, its scope and the objects. The first
// permission and scope go into the entry, unless a later check is denied: a change of one
// object may also require permissions for others.
func (t *Trail) Check(granted bool, p Permission, s Scope, subjects ...string) {
	t.note(func() {
		if t.permission == "" || !granted {
			t.permission, t.scope = p, s
		}
		t.add(subjects)
	})
}

func (t *Trail) add(subjects []string) {
	for _, id := range subjects {
		if id != "" && !slices.Contains(t.subjects, id) {
			t.subjects = append(t.subjects, id)
		}
	}
}

// Hide notes that the object of the last Ask exists but is hidden from the
// caller.
func (t *Trail) Hide() { t.note(func() { t.hidden = true }) }

// Begin notes the operation that the request started.
func (t *Trail) Begin(operation string) { t.note(func() { t.operation = operation }) }

// Hidden reports whether an object was hidden from the caller.
func (t *Trail) Hidden() (hidden bool) {
	t.note(func() { hidden = t.hidden })
	return hidden
}

// Tell writes the notes into an entry.
func (t *Trail) Tell(e *AuditEntry) {
	t.note(func() {
		e.Permission, e.Project, e.Region = t.permission, t.scope.Project, t.scope.Region
		for _, id := range t.subjects {
			if !slices.Contains(e.Subjects, id) {
				e.Subjects = append(e.Subjects, id)
			}
		}
		if t.operation != "" {
			e.Operation = t.operation
		}
	})
}

func (t *Trail) note(f func()) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}
