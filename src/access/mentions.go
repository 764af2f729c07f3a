package access

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// mentions hides the ids of instances that an identity may not see, where texts
// mention them. It reads only mentioned instances, each once. Use a new one for
// each response.
type mentions struct {
	guard  *guard
	hides  func(id string) (bool, error) // nil before the first use
	hidden map[string]bool               // by id
}

func (g *guard) mentions() *mentions { return &mentions{guard: g, hidden: map[string]bool{}} }

// hides returns a function that reports whether an instance is hidden from the
// identity. An instance without a record is hidden from an identity that may not
// see all instances, because its scope is unknown.
func (g *guard) hides(ctx context.Context) (func(id string) (bool, error), error) {
	visible, err := g.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	if visible == nil {
		return func(string) (bool, error) { return false, nil }, nil
	}
	return func(id string) (bool, error) {
		in, err := g.records.Instance(ctx, id)
		if err != nil {
			return nf.KindOf(err) == nf.NotFound, nf.IgnoreNotFound(err)
		}
		return !visible(instanceScope(in)), nil
	}, nil
}

// isHidden reports whether the identity may not see an instance.
func (m *mentions) isHidden(ctx context.Context, id string) (hidden bool, err error) {
	if hidden, known := m.hidden[id]; known {
		return hidden, nil
	}
	if m.hides == nil {
		if m.hides, err = m.guard.hides(ctx); err != nil {
			return false, err
		}
	}
	hidden, err = m.hides(id)
	if err == nil {
		m.hidden[id] = hidden
	}
	return hidden, err
}

// filter hides hidden instances in the mentions of a text.
func (m *mentions) filter(ctx context.Context, mentions *[]nf.Mentioned) error {
	shown, err := nf.FilterMentions(*mentions, func(id string) (bool, error) { return m.isHidden(ctx, id) })
	*mentions = shown
	return err
}

// filtered returns the items with filtered mentions. Of returns an item's mentions.
func filtered[T any](ctx context.Context, m *mentions, items []T, of func(*T) *[]nf.Mentioned) ([]T, error) {
	items = slices.Clone(items)
	for i := range items {
		if err := m.filter(ctx, of(&items[i])); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func ofViolation(v *nf.Violation) *[]nf.Mentioned { return &v.Mentions }
func ofStep(s *nf.Step) *[]nf.Mentioned           { return &s.Mentions }
func ofChange(c *nf.Change) *[]nf.Mentioned       { return &c.Mentions }

func (m *mentions) failure(ctx context.Context, failure **nf.Failure) (err error) {
	if *failure == nil {
		return nil
	}
	shown := **failure
	*failure = &shown
	if shown.Violations, err = filtered(ctx, m, shown.Violations, ofViolation); err != nil {
		return err
	}
	return m.filter(ctx, &shown.Mentions)
}

func (m *mentions) operation(ctx context.Context, op nf.Operation) (_ nf.Operation, err error) {
	if err := m.guard.placed(ctx, &op); err != nil {
		return nf.Operation{}, err
	}
	if op.Waiting != nil {
		waiting := *op.Waiting
		op.Waiting = &waiting
		if err := m.filter(ctx, &waiting.Mentions); err != nil {
			return nf.Operation{}, err
		}
	}
	if op.Site.Instances, err = m.visible(ctx, op.Site.Instances); err != nil {
		return nf.Operation{}, err
	}
	if op.Steps, err = filtered(ctx, m, op.Steps, ofStep); err != nil {
		return nf.Operation{}, err
	}
	for _, f := range []**nf.Failure{&op.Failure, &op.UndoFailure} {
		if err := m.failure(ctx, f); err != nil {
			return nf.Operation{}, err
		}
	}
	return op, nil
}

// shownIn returns operation as a function of a list.
func (m *mentions) shownIn(ctx context.Context) func(nf.Operation) (nf.Operation, error) {
	return func(op nf.Operation) (nf.Operation, error) { return m.operation(ctx, op) }
}

// visible returns the ids of the instances that are not hidden.
func (m *mentions) visible(ctx context.Context, ids []string) ([]string, error) {
	var out []string
	for _, id := range ids {
		hidden, err := m.isHidden(ctx, id)
		if err != nil {
			return nil, err
		}
		if !hidden {
			out = append(out, id)
		}
	}
	return out, nil
}

// shown returns an error without the mentions of hidden instances. An instance
// that cannot be read is hidden.
func (g *guard) shown(ctx context.Context, err error) error {
	text := nf.TextOf(err)
	if len(text.Mentions) == 0 || nf.KindOf(err) == nf.Internal { // the response does not show the cause of an internal error
		return err
	}
	m, some := g.mentions(), false
	hidden := func(id string) (bool, error) {
		hide, err := m.isHidden(ctx, id)
		some = some || hide || err != nil
		return hide || err != nil, nil
	}
	text.Mentions, _ = nf.FilterMentions(text.Mentions, hidden)
	if !some {
		return err
	}
	out := &redactedError{text: text, is: nf.Error{
		Kind: nf.KindOf(err), Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err), Confirm: nf.ConfirmOf(err), RetryAfter: nf.RetryAfterOf(err),
	}}
	if violations := slices.Clone(nf.ViolationsOf(err)); violations != nil {
		for i, v := range violations {
			violations[i].Mentions, _ = nf.FilterMentions(v.Mentions, hidden)
		}
		out.is.Err = violations
	}
	return out
}

// redactedError is an error without the mentions of hidden instances. It keeps
// the attributes that callers branch on.
type redactedError struct {
	text nf.Text
	is   nf.Error
}

func (r *redactedError) Error() string { return r.text.String() }

// Text returns the text of the error.
func (r *redactedError) Text() nf.Text { return r.text }

func (r *redactedError) Unwrap() error { return &r.is }
