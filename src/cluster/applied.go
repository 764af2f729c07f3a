package cluster

import (
	"crypto/sha256"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	mostApplied = 1024        // applied objects that are remembered per region
	oldFields   = time.Minute // age of managed fields whose time tells of each change since
)

// applied is an object as it was after its last apply. A later apply of the same object
// that finds it so sends nothing: the API server would change nothing.
type applied struct {
	object  digest // the object that was applied
	version string // its resource version
	fields  digest // see appliedFields
	at      time.Time
	message string // the warnings of the API server
}

// remember remembers an object that the owner has applied, with the warnings.
func (a *answers) remember(owner nf.Subject, key string, object digest, now *metav1.ObjectMeta, message string) {
	fields, _ := appliedFields(owner, now)
	is := applied{object, now.ResourceVersion, fields, a.clock(), message}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied.Add(key, is)
}

// last returns the last apply of an object.
func (a *answers) last(key string) (applied, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied.Get(key)
}

// digest returns a digest of the object to apply.
func (a *application) digest() (digest, error) {
	body, err := a.object.MarshalJSON()
	if err != nil {
		return digest{}, nf.E(nf.Invalid, "apply", a.target.ref.String(), err)
	}
	return sha256.Sum256(body), nil
}

// unchanged returns the change of an object that was applied before and still has the
// fields of that apply. The resource version alone does not tell, because it changes with
// the status.
func (a *application) unchanged(had *metav1.ObjectMeta, is digest) (nf.Change, bool) {
	if had == nil || had.DeletionTimestamp != nil {
		return nf.Change{}, false
	}
	last, known := a.client.answers.last(a.target.ref.Key())
	if !known || last.object != is || had.ResourceVersion != last.version && !a.keeps(had, last) {
		return nf.Change{}, false
	}
	change := changeOf(a.target, had, nf.Unchanged)
	change.Message = last.message
	return change, true
}

// keeps reports whether an object with another resource version still has what was
// applied. The owner loses a field whose value another manager changes; and the time of
// the owner's fields changes if the owner itself changes one. That time has no fractions
// of seconds and is of another clock, so it counts only if it was old enough.
func (a *application) keeps(had *metav1.ObjectMeta, last applied) bool {
	fields, since := appliedFields(a.owner, had)
	return fields == last.fields && last.at.Sub(since) >= oldFields &&
		within(a.object.GetLabels(), had.Labels) && within(a.object.GetAnnotations(), had.Annotations)
}

// appliedFields returns a digest of the object's identity and of the fields that the owner has
// applied, and the time of their last change.
func appliedFields(owner nf.Subject, m *metav1.ObjectMeta) (is digest, since time.Time) {
	h := sha256.New()
	fmt.Fprintln(h, m.UID) // a hash takes all
	for _, f := range m.ManagedFields {
		if f.Manager == manager(owner) && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.FieldsV1 != nil && f.Time != nil {
			since = f.Time.Time
			fmt.Fprintln(h, f.APIVersion, since.UTC(), string(f.FieldsV1.GetRawBytes()))
		}
	}
	return digest(h.Sum(nil)), since
}
