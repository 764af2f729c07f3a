package nf

import (
	"context"
	"slices"
	"sync"
)

// Anonymous is who asks when access is open.
func Anonymous() Identity { return Identity{Kind: "anonymous", Name: "anonymous"} }

// String returns "kind:name", which no other identity has.
func (i Identity) String() string { return i.Kind + ":" + i.Name }

type identityKey struct{}

// WithIdentity returns a context of what an identity asks for.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns who the context acts for. False means that nobody was
// asked who it is.
func IdentityOf(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// Trail collects, while a request is carried out, what its audit entry will
// say. Its methods may be called on nil, when nobody keeps one, and by several
// goroutines.
type Trail struct {
	mu         sync.Mutex
	permission Permission
	scope      Scope
	subjects   []string
	operation  string
	hidden     bool
}

type trailKey struct{}

// WithTrail returns a context that leaves a trail.
func WithTrail(ctx context.Context) (context.Context, *Trail) {
	t := &Trail{}
	return context.WithValue(ctx, trailKey{}, t), t
}

// TrailOf returns the context's trail, or nil.
func TrailOf(ctx context.Context) *Trail {
	t, _ := ctx.Value(trailKey{}).(*Trail)
	return t
}

// Ask notes which permission was asked for, where, and for what. The last one
// decides.
func (t *Trail) Ask(p Permission, s Scope, subjects ...string) {
	t.note(func() {
		t.permission, t.scope = p, s
		for _, id := range subjects {
			if id != "" && !slices.Contains(t.subjects, id) {
				t.subjects = append(t.subjects, id)
			}
		}
	})
}

// Hide notes that what was asked for last is there, and kept from who asks.
func (t *Trail) Hide() { t.note(func() { t.hidden = true }) }

// Begin notes the operation that the request began.
func (t *Trail) Begin(operation string) { t.note(func() { t.operation = operation }) }

// Hidden reports whether something was kept from who asks.
func (t *Trail) Hidden() (hidden bool) {
	t.note(func() { hidden = t.hidden })
	return hidden
}

// Tell writes what was noted into an entry.
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
