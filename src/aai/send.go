package aai

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// send sends the changes of subjects, as many of them in one transaction as fit.
func (p *pass) send(ctx context.Context, subjects []*subject) error {
	for len(subjects) > 0 {
		n, changes := 0, 0
		for n < len(subjects) && (n == 0 || changes+len(subjects[n].changes) <= p.batch) {
			changes += len(subjects[n].changes)
			n++
		}
		if err := p.sendTogether(ctx, subjects[:n]); err != nil {
			return err
		}
		subjects = subjects[n:]
	}
	return nil
}

// sendTogether sends the changes of subjects in one transaction. It sends those of a
// single subject in several, if they are too many.
func (p *pass) sendTogether(ctx context.Context, subjects []*subject) error {
	var changes []change
	for _, s := range subjects {
		changes = append(changes, s.changes...)
	}
	for part := range slices.Chunk(changes, p.batch) {
		if err := p.writer.client.transact(ctx, part); err != nil {
			return p.handle(ctx, subjects, err)
		}
		p.report.Transactions++
	}
	for _, s := range subjects {
		p.finish(s)
	}
	return nil
}

// handle decides what becomes of subjects whose transaction has failed.
func (p *pass) handle(ctx context.Context, subjects []*subject, err error) error {
	switch judge(err) {
	case verdictConflict:
		return p.resolve(ctx, subjects, err)
	case verdictMissing:
		return p.findMissing(ctx, subjects, err)
	case verdictTooMany:
		if p.batch > 1 {
			p.batch /= 2
			return p.send(ctx, subjects)
		}
	case verdictRejected:
	default:
		readAgain(subjects) // the response may be lost, and not the changes
		return denied(err)
	}
	return p.isolate(ctx, subjects, err)
}

// isolate parks a subject whose changes A&AI rejects. It sends several subjects in two
// halves, so that the others are written.
func (p *pass) isolate(ctx context.Context, subjects []*subject, err error) error {
	if len(subjects) == 1 {
		subjects[0].park(err.Error())
		return nil
	}
	half := len(subjects) / 2
	if err := p.send(ctx, subjects[:half]); err != nil {
		return err
	}
	return p.send(ctx, subjects[half:])
}

// resolve has subjects read again of which one has changed. If that does not help, one
// of them changes another one: the deletion of an address, for example, changes the
// version of its network. They are then sent apart.
func (p *pass) resolve(ctx context.Context, subjects []*subject, cause error) error {
	tried := true
	for _, s := range subjects {
		s.unread, tried = true, tried && s.conflicted
		s.conflicted = true
	}
	if tried && len(subjects) > 1 {
		return p.isolate(ctx, subjects, cause)
	}
	return nil
}

func readAgain(subjects []*subject) {
	for _, s := range subjects {
		s.unread = true
	}
}

// findMissing finds out which of the objects do not exist that subjects are related to
// or contained in. Subjects without such objects are read again. If that has been
// tried, the cause is another one, such as an edge without a rule.
func (p *pass) findMissing(ctx context.Context, subjects []*subject, cause error) error {
	exists := make(map[string]bool)
	found, tried := false, true
	for _, s := range subjects {
		for _, path := range s.needs() {
			there, known := exists[path]
			if !known {
				var err error
				if there, err = p.writer.provide(ctx, path); err != nil {
					return denied(err)
				}
				exists[path] = there
			}
			if !there {
				s.state, s.missing, found = stateMissing, append(s.missing, path), true
			}
		}
		s.unread = s.state == stateOpen
		tried = tried && s.searched
		s.searched = true
	}
	if !found && tried {
		return p.isolate(ctx, subjects, cause)
	}
	return nil
}

// provide reports whether an object of others exists. It creates a missing tenant, if
// the writer does.
func (w *Writer) provide(ctx context.Context, path string) (exists bool, err error) {
	exists, err = w.client.exists(ctx, path)
	i := strings.LastIndex(path, tenantsPart)
	if exists || err != nil || !w.createsTenants || i < 0 {
		return exists, err
	}
	id, err := url.PathUnescape(path[i+len(tenantsPart):])
	if err != nil {
		return false, fmt.Errorf("cannot create %s: %w", path, err)
	}
	err = w.client.transact(ctx, []change{{Action: "put", URI: path, Body: map[string]any{"tenant-id": id, "tenant-name": id, ownerName: w.owner}}})
	switch verdict := judge(err); {
	case err == nil, verdict == verdictConflict: // another client has created it
		return true, nil
	case verdict == verdictMissing: // its cloud region
		return false, nil
	}
	return false, err
}

// needs returns the objects of others that must exist before a subject's.
func (s *subject) needs() []string {
	if s.want == nil {
		return nil
	}
	out := s.want.targets()
	if parent := parentOf(s.path); parent != "" {
		out = append(out, parent)
	}
	return out
}

// denied marks the error of a request that A&AI denies as a whole.
func denied(err error) error {
	if judge(err) == verdictDenied {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}
