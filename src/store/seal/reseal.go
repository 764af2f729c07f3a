package seal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Report counts the results of Reseal by record.
type Report struct {
	Primary   string // the KEK that encrypts the rewritten records
	Rewritten int
	Current   int // needed no change
	Skipped   int
	Failed    int // could not be decrypted
}

// Reseal re-encrypts all records that another KEK than the primary has
// encrypted. It leaves out keys that begin with one of the prefixes to skip.
// The store can be used at the same time: a record that another caller writes
// is checked again. A re-encrypted record has a new revision, as after a put.
// Reseal may be interrupted at any time and repeated.
//
// If a record cannot be decrypted, Reseal leaves it and continues. The error
// then names such records, at most the first ten, and has the kind of the
// first. Any other error ends Reseal.
func (s *Store) Reseal(ctx context.Context, skip ...string) (Report, error) {
	primary, err := s.keys.Primary(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("cannot re-encrypt the records: %w", err)
	}
	report := Report{Primary: primary.ID()}
	var failed []error
	for e, err := range store.Parts(ctx, s.kv, store.PartSize) {
		if err != nil {
			return report, fmt.Errorf("cannot re-encrypt all records: %w", err)
		}
		if reserved(e.Key) {
			continue
		}
		if slices.ContainsFunc(skip, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) }) {
			report.Skipped++
			continue
		}
		done, err := s.renew(ctx, e, primary)
		switch {
		case err == nil && done:
			report.Rewritten++
		case err == nil:
			report.Current++
		case unopened(err):
			report.Failed++
			failed = append(failed, err)
		default:
			return report, fmt.Errorf("cannot re-encrypt all records: %w", err)
		}
	}
	return report, summary(failed)
}

// renew re-encrypts one record, if it is due. If another caller writes it at
// the same time, that write wins, and renew checks the new value.
func (s *Store) renew(ctx context.Context, e store.Entry, primary KEK) (bool, error) {
	for {
		id, _, _, err := parse(e.Value)
		if err != nil {
			return false, fail(ctx, "open", e.Key, err)
		}
		if id == primary.ID() {
			return false, nil
		}
		plain, err := s.Open(ctx, e)
		if err != nil {
			return false, err
		}
		value, err := s.sealValue(ctx, primary, e.Key, plain.Value)
		if err != nil {
			return false, err
		}
		_, err = s.kv.Put(ctx, e.Key, value, e.Revision)
		if nf.KindOf(err) != nf.Conflict {
			return err == nil, err
		}
		e, err = s.kv.Get(ctx, e.Key)
		if nf.KindOf(err) == nf.NotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// unopened reports whether an error affects one record only.
func unopened(err error) bool {
	return nf.KindOf(err) == nf.Internal || nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) == nf.ReasonKey
}

// summary returns one error for many, which contains the first few.
func summary(failed []error) error {
	const told = 10
	if len(failed) == 0 {
		return nil
	}
	subject := "one record"
	if n := len(failed); n > 1 {
		subject = fmt.Sprintf("%d records", n)
	}
	return &nf.Error{Kind: nf.KindOf(failed[0]), Op: "reseal", Subject: subject,
		Reason: nf.ReasonOf(failed[0]), Err: errors.Join(failed[:min(told, len(failed))]...)}
}

// Status is the number of records of a store by the key that encrypts them.
type Status struct {
	Primary string         // the KEK that encrypts new values
	Records map[string]int // by the id of the KEK
	Missing []string       // used KEKs that this process does not have, sorted
	Plain   int            // records that are not encrypted, or whose header is invalid
}

// Status counts the records by the KEK that encrypts them. It reads all records
// and decrypts none.
func (s *Store) Status(ctx context.Context) (Status, error) {
	primary, err := s.keys.Primary(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("cannot count the records: %w", err)
	}
	status := Status{Primary: primary.ID(), Records: map[string]int{}}
	for e, err := range s.kv.List(ctx, "", "") {
		if err != nil {
			return Status{}, fmt.Errorf("cannot count the records: %w", err)
		}
		if reserved(e.Key) {
			continue
		}
		if id, _, _, err := parse(e.Value); err == nil {
			status.Records[id]++
		} else {
			status.Plain++
		}
	}
	for id := range status.Records {
		_, err := s.keys.Find(ctx, id)
		if nf.KindOf(err) == nf.NotFound {
			status.Missing = append(status.Missing, id)
		} else if err != nil {
			return Status{}, fmt.Errorf("cannot count the records: %w", err)
		}
	}
	slices.Sort(status.Missing)
	return status, nil
}
