package lifecycle

import (
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// secrecy hides the sensitive values of an instance in what is told: an API
// server repeats the values that it refuses, and a comparison shows what differs.
type secrecy struct{ nf.Redactor }

// secretsOf returns the secrecy of revisions: of their inputs, of each under its
// own list of names, and of what their templates read.
func secretsOf(revisions ...nf.Revision) secrecy {
	var values []string
	for _, rev := range revisions {
		values = append(values, rev.Hidden...)
		values = append(values, rev.Inputs.Secrets(rev.Sensitive)...)
		for _, a := range rev.Amendments {
			values = append(values, a.Inputs.Secrets(rev.Sensitive)...)
		}
	}
	return secrecy{nf.NewRedactor(values)}
}

// secrecy returns the secrecy of what was prepared so far.
func (p *prepared) secrecy() secrecy {
	rev := p.revision(0)
	if p.window != nil {
		rev.Hidden = slices.Concat(rev.Hidden, p.window.seen)
	}
	return secretsOf(rev)
}

// error hides the values in an error and keeps what callers branch on.
func (s secrecy) error(err error) error {
	if err == nil || s.Text(err.Error()) == err.Error() {
		return err
	}
	if u := (unrecorded{}); errors.As(err, &u) {
		return err // it speaks of the store, and will be tried again
	}
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		return &nf.Error{Kind: nf.KindOf(err), Op: "apply", Subject: "the package", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err),
			Err: errors.New(s.Text(err.Error()))}
	}
	for i, v := range violations {
		violations[i].Field, violations[i].Message = s.Text(v.Field), s.Text(v.Message)
		violations[i].Object.Namespace, violations[i].Object.Name = s.Text(v.Object.Namespace), s.Text(v.Object.Name)
	}
	return rewritten(err, violations)
}

// changes hides the values in what a comparison shows.
func (s secrecy) changes(changes []nf.Change) {
	for _, c := range changes {
		for i := range c.Fields {
			c.Fields[i].Path = s.Text(c.Fields[i].Path)
			c.Fields[i].Old, c.Fields[i].New = s.Value(c.Fields[i].Old), s.Value(c.Fields[i].New)
		}
	}
}
