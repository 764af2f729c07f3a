package lifecycle

import (
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// redactor masks an instance's sensitive values in errors, diffs and warnings. API
// servers quote the values that they reject.
type redactor struct{ values nf.Redactor }

// newRedactor returns a redactor for revisions. It masks the sensitive inputs of
// each, and the contents of the Secrets that their templates read.
func newRedactor(revisions ...nf.Revision) redactor {
	var values []string
	for _, rev := range revisions {
		values = append(values, rev.Hidden...)
		values = append(values, rev.Inputs.Secrets(rev.Sensitive)...)
		for _, a := range rev.Amendments {
			values = append(values, a.Inputs.Secrets(rev.Sensitive)...)
		}
	}
	return redactor{nf.NewRedactor(values)}
}

// redactor returns a redactor for everything that has been prepared so far.
func (p *prepared) redactor() redactor {
	rev := p.revision(0)
	if p.view != nil {
		rev.Hidden = slices.Concat(rev.Hidden, p.view.seen)
	}
	return newRedactor(rev)
}

// error masks the values in an error, and keeps what callers branch on.
func (r redactor) error(err error) error {
	if err == nil || r.values.Text(err.Error()) == err.Error() {
		return err
	}
	if operation.IsStoreError(err) {
		return err // it is an error of the store, and will be retried
	}
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		return &nf.Error{Kind: nf.KindOf(err), Op: "apply", Subject: "the package", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err),
			Err: nf.Errorf("%s", nf.TextOf(err).Map(r.values.Text))}
	}
	for i, v := range violations {
		v.Field = r.values.Text(v.Field)
		violations[i] = v.Saying(v.Said().Map(r.values.Text))
	}
	return rewritten(err, violations)
}

// changes masks the values in a diff.
func (r redactor) changes(changes []nf.Change) {
	for _, c := range changes {
		for i := range c.Fields {
			c.Fields[i].Path = r.values.Text(c.Fields[i].Path)
			c.Fields[i].Old, c.Fields[i].New = r.values.Value(c.Fields[i].Old), r.values.Value(c.Fields[i].New)
		}
	}
}

// drifts masks the values in drifts.
func (r redactor) drifts(drifts []nf.Drift) {
	for i, d := range drifts {
		drifts[i].Message = r.values.Text(d.Message)
		for n, f := range d.Fields {
			d.Fields[n].Path = r.values.Text(f.Path)
			d.Fields[n].Applied, d.Fields[n].Found = r.values.Value(f.Applied), r.values.Value(f.Found)
		}
	}
}
