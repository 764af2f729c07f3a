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
	asker, err := g.asker(ctx)
	if err != nil {
		return nil, err
	}
	if g.authorizer.view(ctx, asker).everywhere(nf.ReadInstance) {
		return func(string) (bool, error) { return false, nil }, nil
	}
	visible := g.authorizer.Visible(ctx, asker, nf.ReadInstance)
	return func(id string) (bool, error) {
		in, err := g.records.Instance(ctx, id)
		if err != nil {
			return nf.KindOf(err) == nf.NotFound, nf.IgnoreNotFound(err)
		}
		return !visible(instanceScope(in)), nil
	}, nil
}

// look finds out which of the instances are hidden.
func (m *mentions) look(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if _, known := m.hidden[id]; known {
			continue
		}
		if m.hides == nil {
			hides, err := m.guard.hides(ctx)
			if err != nil {
				return err
			}
			m.hides = hides
		}
		hide, err := m.hides(id)
		if err != nil {
			return err
		}
		m.hidden[id] = hide
	}
	return nil
}

// text hides the mentions of hidden instances in a text, and returns the ids of
// the instances that it still mentions. The caller must call look first.
func (m *mentions) text(text string, ids []string) (string, []string) {
	var visible, hidden []string
	for _, id := range ids {
		if m.hidden[id] {
			hidden = append(hidden, id)
		} else {
			visible = append(visible, id)
		}
	}
	return nf.HideMentions(text, hidden), visible
}

// redact calls text for a message and its mentions.
func (m *mentions) redact(ctx context.Context, message *string, ids *[]string) error {
	if err := m.look(ctx, *ids); err != nil {
		return err
	}
	*message, *ids = m.text(*message, *ids)
	return nil
}

// redacted returns the items with redacted messages. Of returns an item's
// message and mentions.
func redacted[T any](ctx context.Context, m *mentions, items []T, of func(*T) (message *string, ids *[]string)) ([]T, error) {
	items = slices.Clone(items)
	for i := range items {
		message, ids := of(&items[i])
		if err := m.redact(ctx, message, ids); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func ofViolation(v *nf.Violation) (*string, *[]string) { return &v.Message, &v.Mentions }
func ofStep(s *nf.Step) (*string, *[]string)           { return &s.Message, &s.Mentions }
func ofChange(c *nf.Change) (*string, *[]string)       { return &c.Message, &c.Mentions }
func ofInstance(in *nf.Instance) (*string, *[]string)  { return &in.Message, &in.Mentions }

func (m *mentions) progress(ctx context.Context, steps *[]nf.Step, failures ...**nf.Failure) (err error) {
	if *steps, err = redacted(ctx, m, *steps, ofStep); err != nil {
		return err
	}
	for _, f := range failures {
		if err := m.failure(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (m *mentions) failure(ctx context.Context, failure **nf.Failure) (err error) {
	if *failure == nil {
		return nil
	}
	shown := **failure
	*failure = &shown
	if shown.Violations, err = redacted(ctx, m, shown.Violations, ofViolation); err != nil {
		return err
	}
	ids := shown.Mentions
	if err := m.redact(ctx, &shown.Message, &shown.Mentions); err != nil {
		return err
	}
	if slices.ContainsFunc(ids, func(id string) bool { return m.hidden[id] && nf.MayName(shown.Subject, id) }) {
		shown.Op, shown.Subject = "", "" // the message does not begin with them any longer
	}
	return nil
}

func (m *mentions) operation(ctx context.Context, op nf.Operation) (nf.Operation, error) {
	if op.Waiting != nil {
		waiting := *op.Waiting
		op.Waiting = &waiting
		if err := m.redact(ctx, &waiting.For, &waiting.Mentions); err != nil {
			return nf.Operation{}, err
		}
	}
	if err := m.look(ctx, op.Site.Instances); err != nil {
		return nf.Operation{}, err
	}
	_, op.Site.Instances = m.text("", op.Site.Instances)
	err := m.progress(ctx, &op.Steps, &op.Failure, &op.UndoFailure)
	return op, err
}

// shown returns an error without the mentions of hidden instances. If an
// instance cannot be read, all mentioned instances are hidden.
func (g *guard) shown(ctx context.Context, err error) error {
	ids := nf.MentionsOf(err)
	if len(ids) == 0 || nf.KindOf(err) == nf.Internal { // the response does not show the cause of an internal error
		return err
	}
	m := g.mentions()
	if m.look(ctx, ids) != nil {
		for _, id := range ids {
			m.hidden[id] = true
		}
	}
	text, visible := m.text(err.Error(), ids)
	if len(visible) == len(ids) {
		return err
	}
	out := &redactedError{text: text, is: nf.Error{
		Kind: nf.KindOf(err), Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err), Confirm: nf.ConfirmOf(err), RetryAfter: nf.RetryAfterOf(err),
	}}
	if violations := slices.Clone(nf.ViolationsOf(err)); violations != nil {
		for i, v := range violations {
			violations[i].Message, violations[i].Mentions = m.text(v.Message, v.Mentions)
		}
		out.is.Err = violations
	}
	return out
}

// redactedError is an error without the mentions of hidden instances. It keeps
// the attributes that callers branch on.
type redactedError struct {
	text string
	is   nf.Error
}

func (r *redactedError) Error() string { return r.text }

func (r *redactedError) Unwrap() error { return &r.is }
