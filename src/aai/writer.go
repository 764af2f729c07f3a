package aai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	defaultBatch = 30 // changes in a transaction, which A&AI limits to 30
	attempts     = 5  // comparisons of one object in one call
)

// Writer makes A&AI's objects equal to documents. It is safe for concurrent use, but
// not for the same objects.
type Writer struct {
	client *Client
	owner  string
	batch  int

	createsTenants bool
}

// NewWriter returns a writer of objects with a data-owner. A batch of 0 is 30 changes
// in a transaction.
func NewWriter(client *Client, owner string, batch int) *Writer {
	return &Writer{client: client, owner: owner, batch: cmp.Or(batch, defaultBatch)}
}

// WithTenants returns a writer that creates the tenants that its objects need. It never
// deletes them.
func (w *Writer) WithTenants() *Writer {
	out := *w
	out.createsTenants = true
	return &out
}

// Written is the objects that A&AI has, or may have, because of the service: the
// digests of their documents, by path. An empty digest says that the state is unknown.
type Written map[string]string

// Intend returns the objects of the last call with those that the next one may create.
// A caller stores it before the call, so that a crash leaves no unknown object.
func (w Written) Intend(wanted []Document) Written {
	out := maps.Clone(w)
	if out == nil {
		out = make(Written)
	}
	for _, d := range wanted {
		if _, known := out[d.Path]; !known {
			out[d.Path] = ""
		}
	}
	return out
}

// Report is the result of a call.
type Report struct {
	Written      Written
	Parked       map[string]string // reasons by path, for objects that cannot be written unless something changes
	Missing      []string          // paths of objects of others, without which some cannot be written
	Transactions int               // that A&AI has executed
}

// Done reports whether A&AI is equal to the documents.
func (r Report) Done() bool { return len(r.Parked) == 0 && len(r.Missing) == 0 }

// ErrDenied is wrapped by the error of a call that A&AI has denied as a whole: its
// account, or its version of the API, is not accepted.
var ErrDenied = errors.New("A&AI does not accept the account or the version")

// errChanging is the error of objects that another client changes again and again.
var errChanging = errors.New("another client keeps changing them")

// Write makes A&AI equal to documents: it creates, changes and deletes objects, of
// which last names those that it may have. Unless it is to verify, it reads only
// objects that may have changed. After an error, the report tells how far it came;
// the caller tries again later.
func (w *Writer) Write(ctx context.Context, wanted []Document, last Written, verify bool) (Report, error) {
	p := &pass{writer: w, batch: w.batch, report: Report{Written: maps.Clone(last), Parked: map[string]string{}}}
	if p.report.Written == nil {
		p.report.Written = make(Written)
	}
	if err := p.collect(wanted, last, verify); err != nil {
		return p.report, err
	}
	for range attempts {
		if err := p.plan(ctx); err != nil {
			return p.conclude(), err
		}
		open := p.open()
		if len(open) == 0 {
			return p.conclude(), nil
		}
		if err := p.send(ctx, open); err != nil {
			return p.conclude(), err
		}
	}
	if n := len(p.open()); n > 0 {
		return p.conclude(), fmt.Errorf("cannot write %d objects to A&AI: %w", n, errChanging)
	}
	return p.conclude(), nil
}

// pass is one call of Write.
type pass struct {
	writer   *Writer
	batch    int // changes in a transaction; halved when A&AI finds it too large
	subjects []*subject
	report   Report
}

// subject is one object that is to be created, changed or deleted.
type subject struct {
	path    string
	want    *Document // nil: it is to be deleted
	digest  string    // of want
	unread  bool      // A&AI's state must be read first
	changes []change
	state   state
	reason  string // why it is parked
	missing []string
	// searched says that A&AI has reported a missing object before, and none was found.
	searched bool
	// conflicted says that a transaction with it has met another version before.
	conflicted bool
}

// state is how far a subject has come.
type state int

const (
	stateOpen state = iota
	stateDone
	stateParked
	stateMissing
)

// collect determines the subjects, and which of them must be read. Deletions are last.
func (p *pass) collect(wanted []Document, last Written, verify bool) error {
	isWanted := make(map[string]bool, len(wanted))
	for _, d := range wanted {
		digest, err := d.Digest()
		if err != nil {
			return err
		}
		isWanted[d.Path] = true
		known, exists := last[d.Path]
		s := &subject{path: d.Path, want: &d, digest: digest, unread: verify || exists && known != digest}
		switch {
		case s.unread:
		case exists:
			s.state = stateDone
		default:
			s.changes = []change{d.create()}
		}
		p.subjects = append(p.subjects, s)
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		if !isWanted[path] {
			p.subjects = append(p.subjects, &subject{path: path, unread: true})
		}
	}
	return nil
}

// open returns the subjects that have not come to an end.
func (p *pass) open() (out []*subject) {
	for _, s := range p.subjects {
		if s.state == stateOpen {
			out = append(out, s)
		}
	}
	return out
}

// plan reads the objects whose state is unknown, and determines their changes.
func (p *pass) plan(ctx context.Context) error {
	for _, s := range p.open() {
		if !s.unread {
			continue
		}
		have, err := p.writer.client.get(ctx, s.path)
		if err != nil {
			return denied(err)
		}
		s.unread = false
		s.decide(p.writer.owner, have)
		if s.state == stateDone {
			p.finish(s)
		}
	}
	return nil
}

// decide determines the changes of an object, or that there are none.
func (s *subject) decide(owner string, have map[string]any) {
	s.changes = nil
	switch isForeign := have != nil && have[ownerName] != owner; {
	case isForeign && s.want == nil: // ours has been deleted or taken over
	case isForeign:
		s.park(fmt.Sprintf("it belongs to %v", cmp.Or[any](have[ownerName], "another client")))
		return
	case have == nil && s.want != nil:
		s.changes = []change{s.want.create()}
	case have != nil && s.want != nil:
		s.changes = compare(owner, *s.want, have)
	case have != nil:
		s.changes = removeAll(owner, s.path, have)
	}
	if len(s.changes) == 0 {
		s.state = stateDone
	}
}

func (s *subject) park(reason string) { s.state, s.reason = stateParked, reason }

// finish records that A&AI is equal to what is wanted of an object.
func (p *pass) finish(s *subject) {
	s.state = stateDone
	if s.want == nil {
		delete(p.report.Written, s.path)
		return
	}
	p.report.Written[s.path] = s.digest
}

// conclude returns the report. Objects that have not come to an end may be there, in
// any state.
func (p *pass) conclude() Report {
	missing := make(map[string]bool)
	for _, s := range p.subjects {
		if s.state == stateDone {
			continue
		}
		p.report.Written[s.path] = ""
		if s.state == stateParked {
			p.report.Parked[s.path] = s.reason
		}
		for _, path := range s.missing {
			missing[path] = true
		}
	}
	p.report.Missing = slices.Sorted(maps.Keys(missing))
	return p.report
}
