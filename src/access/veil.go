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

// users returns those of the instances that may be seen.
func (v *veil) users(ctx context.Context, users []string) ([]string, error) {
	if len(users) == 0 {
		return users, nil
	}
	if err := v.look(ctx); err != nil || v.lifted {
		return users, err
	}
	return slices.DeleteFunc(slices.Clone(users), func(id string) bool { return !v.known[id] }), nil
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

// operation returns an operation without the ids of hidden instances in what
// went wrong.
func (v *veil) operation(ctx context.Context, op nf.Operation) (nf.Operation, error) {
	if op.Failure == nil && len(op.Warnings) == 0 {
		return op, nil
	}
	if err := v.look(ctx); err != nil || v.lifted {
		return op, err
	}
	op.Warnings = slices.Clone(op.Warnings)
	for i, w := range op.Warnings {
		op.Warnings[i] = v.text(w)
	}
	if op.Failure != nil {
		f := *op.Failure
		f.Message, f.Violations = v.text(f.Message), v.violations(f.Violations)
		op.Failure = &f
	}
	return op, nil
}

// changes does the same for what was done to objects.
func (v *veil) changes(ctx context.Context, changes []nf.Change) ([]nf.Change, error) {
	said := func(c nf.Change) bool { return c.Message != "" }
	if !slices.ContainsFunc(changes, said) {
		return changes, nil
	}
	if err := v.look(ctx); err != nil || v.lifted {
		return changes, err
	}
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Message = v.text(changes[i].Message)
	}
	return changes, nil
}
