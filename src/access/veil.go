package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// veil keeps the ids of instances from an identity that may not see them. It
// looks at the instances when that is needed for the first time; one is made
// for each answer.
type veil struct {
	guard  *Guard
	lifted bool            // nothing is hidden
	known  map[string]bool // whether an instance may be seen, by id; nil before the first look
}

func (g *Guard) veil() *veil { return &veil{guard: g} }

func (v *veil) look(ctx context.Context) error {
	if v.lifted || v.known != nil {
		return nil
	}
	g := v.guard
	id, err := g.asker(ctx)
	if err != nil {
		return err
	}
	if v.lifted = g.cfg.Authorizer.view(ctx, id).everywhere(nf.ReadInstance); v.lifted {
		return nil
	}
	all, err := g.cfg.Engine.Instances(ctx)
	if err != nil {
		return err
	}
	visible := g.cfg.Authorizer.Visible(ctx, id, nf.ReadInstance)
	v.known = make(map[string]bool, len(all))
	for _, in := range all {
		v.known[in.ID] = visible(instanceScope(in))
	}
	return nil
}

// text masks the ids of hidden instances in a text. Look comes first.
func (v *veil) text(s string) string {
	if v.lifted {
		return s
	}
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return !inID(r) })
		if n < 0 {
			n = len(s)
		}
		// An id begins and ends with a letter or a digit; a full stop after it is not of it.
		word := strings.TrimRight(s[:n], "._-")
		if seen, is := v.known[word]; is && !seen {
			b.WriteString("(one that you may not see)")
		} else {
			b.WriteString(word)
		}
		b.WriteString(s[len(word):n])
		s = s[n:]
		n = strings.IndexFunc(s, inID)
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

func inID(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
}

func (v *veil) violations(given nf.Violations) nf.Violations {
	out := slices.Clone(given)
	for i := range out {
		out[i].Field, out[i].Message = v.text(out[i].Field), v.text(out[i].Message)
	}
	return out
}

// veiled returns the error as the identity may read it.
func (g *Guard) veiled(ctx context.Context, err error) error {
	kind := nf.KindOf(err)
	if err == nil || kind == nf.Internal { // the cause of which nobody is told
		return err
	}
	v := g.veil()
	if look := v.look(ctx); look != nil {
		return nf.E(kind, "tell", "why", errors.New("what it is about cannot be looked at now"))
	}
	if v.text(err.Error()) == err.Error() {
		return err
	}
	out := nf.Error{Kind: kind, Op: "do", Subject: "this", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err), Confirm: nf.ConfirmOf(err), After: nf.AfterOf(err)}
	cause := err
	if e, ok := errors.AsType[*nf.Error](err); ok {
		out.Op, out.Subject, cause = e.Op, v.text(e.Subject), e.Err
	}
	if violations := nf.ViolationsOf(err); violations != nil {
		out.Err = v.violations(violations)
	} else if cause != nil {
		out.Err = errors.New(v.text(cause.Error()))
	}
	return &out
}

// hide masks the ids of hidden instances in texts. Every sentence of ours that
// names an instance says that it is one; others are let alone, so that not every
// sign of progress has all instances looked at.
func (v *veil) hide(ctx context.Context, texts ...*string) error {
	for _, s := range texts {
		if !strings.Contains(*s, "instance") {
			continue
		}
		if err := v.look(ctx); err != nil {
			return err
		}
		*s = v.text(*s)
	}
	return nil
}

// operation hides what an operation tells of other instances.
func (v *veil) operation(ctx context.Context, op nf.Operation) (nf.Operation, error) {
	var texts []*string
	op.Warnings, op.Steps = slices.Clone(op.Warnings), slices.Clone(op.Steps)
	for i := range op.Warnings {
		texts = append(texts, &op.Warnings[i])
	}
	for i := range op.Steps {
		texts = append(texts, &op.Steps[i].Message)
	}
	if op.Waiting != nil {
		waiting := *op.Waiting
		op.Waiting = &waiting
		texts = append(texts, &waiting.For)
	}
	if op.Failure != nil {
		failure := *op.Failure
		failure.Violations = slices.Clone(failure.Violations)
		op.Failure = &failure
		texts = append(texts, &failure.Message)
		for i := range failure.Violations {
			texts = append(texts, &failure.Violations[i].Message)
		}
	}
	if err := v.hide(ctx, texts...); err != nil {
		return nf.Operation{}, err
	}
	return op, nil
}

// changes does the same for what was done to objects, or would be.
func (v *veil) changes(ctx context.Context, changes []nf.Change) ([]nf.Change, error) {
	changes = slices.Clone(changes)
	for i := range changes {
		if err := v.hide(ctx, &changes[i].Message); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// preview does the same for what a request would do.
func (v *veil) preview(ctx context.Context, p nf.Preview) (nf.Preview, error) {
	p.Warnings = slices.Clone(p.Warnings)
	for i := range p.Warnings {
		if err := v.hide(ctx, &p.Warnings[i]); err != nil {
			return nf.Preview{}, err
		}
	}
	var err error
	if p.Changes, err = v.changes(ctx, p.Changes); err != nil {
		return nf.Preview{}, err
	}
	return p, nil
}
