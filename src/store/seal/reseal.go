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

// Report is what became of the records of a store.
type Report struct {
	Primary   string // the KEK that they are to be sealed by
	Rewritten int
	Current   int // were already as they should be
	Skipped   int
	Failed    int // could not be opened
}

// Reseal goes through all records and seals those anew that another KEK than
// the primary has sealed. Keys that begin with one of the prefixes to skip are
// left. Others may work with the store meanwhile: a record that somebody writes
// at the same time is looked at again, and its revision changes as if it had
// been put. It may be cut at any time and repeated.
//
// A record that does not open is left, and the rest is done nevertheless; the
// error then says which they are, and has the kind of the first. Any other
// error ends it.
func (s *Store) Reseal(ctx context.Context, skip ...string) (Report, error) {
	return s.rewrite(ctx, "reseal", skip, func(e store.Entry, primary string) (bool, error) {
		id, _, _, err := parse(e.Value)
		if err != nil {
			return false, fail(ctx, "open", e.Key, err)
		}
		return id != primary, nil
	})
}

// Adopt goes through all records and seals those that are not sealed at all:
// the records of a store that was written by a release that did not seal. It is
// as safe as Reseal, and has its errors. Whatever bears the mark of a sealed
// value must open: it is not taken for a plain one. What is plain is taken as it
// is found, so this is for the migration of a store that is trusted.
func (s *Store) Adopt(ctx context.Context) (Report, error) {
	return s.rewrite(ctx, "seal", nil, func(e store.Entry, _ string) (bool, error) {
		if !sealed(e.Value) {
			return true, nil
		}
		_, err := s.open(ctx, e)
		return false, err
	})
}

// rewrite seals by the primary KEK what is due.
func (s *Store) rewrite(ctx context.Context, op string, skip []string, due func(e store.Entry, primary string) (bool, error)) (Report, error) {
	primary, err := s.keys.Primary(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("cannot %s the records: %w", op, err)
	}
	report := Report{Primary: primary.ID()}
	var failed []error
	for e, err := range s.kv.List(ctx, "") {
		if err != nil {
			return report, fmt.Errorf("cannot %s all records: %w", op, err)
		}
		if reserved(e.Key) {
			continue
		}
		if slices.ContainsFunc(skip, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) }) {
			report.Skipped++
			continue
		}
		done, err := s.renew(ctx, e, primary, due)
		switch {
		case err == nil && done:
			report.Rewritten++
		case err == nil:
			report.Current++
		case unopened(err):
			report.Failed++
			failed = append(failed, err)
		default:
			return report, fmt.Errorf("cannot %s all records: %w", op, err)
		}
	}
	return report, summary(op, failed)
}

// renew seals one record anew, if it is due. Whoever writes it at the same time
// wins, and what he wrote is looked at instead.
func (s *Store) renew(ctx context.Context, e store.Entry, primary KEK, due func(store.Entry, string) (bool, error)) (bool, error) {
	for {
		todo, err := due(e, primary.ID())
		if err != nil || !todo {
			return false, err
		}
		plain := e
		if sealed(e.Value) {
			if plain, err = s.open(ctx, e); err != nil {
				return false, err
			}
		}
		value, err := sealValue(ctx, primary, e.Key, plain.Value)
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

// unopened reports whether an error is of one record only.
func unopened(err error) bool {
	return nf.KindOf(err) == nf.Internal || nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) == reasonKey
}

// summary returns one error for many, of which it tells the first few.
func summary(op string, failed []error) error {
	const told = 10
	if len(failed) == 0 {
		return nil
	}
	subject := "one record"
	if n := len(failed); n > 1 {
		subject = fmt.Sprintf("%d records", n)
	}
	return &nf.Error{Kind: nf.KindOf(failed[0]), Op: op, Subject: subject,
		Reason: nf.ReasonOf(failed[0]), Err: errors.Join(failed[:min(told, len(failed))]...)}
}

// Status is how the records of a store are sealed.
type Status struct {
	Primary string         // the KEK that new values are sealed by
	Records map[string]int // by the id of the KEK
	Missing []string       // the KEKs among them that this process does not have, sorted
	Plain   int            // records that are not sealed, or whose header cannot be read
}

// Status counts the records by the KEK that they are sealed by. It reads
// everything and opens nothing.
func (s *Store) Status(ctx context.Context) (Status, error) {
	primary, err := s.keys.Primary(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("cannot count the records: %w", err)
	}
	status := Status{Primary: primary.ID(), Records: map[string]int{}}
	for e, err := range s.kv.List(ctx, "") {
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
