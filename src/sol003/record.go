package sol003

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// record is an occurrence as it is stored.
type record struct {
	nf.Occurrence

	Task    task   `json:"task"`
	Engine  effort `json:"engine,omitzero"`
	Claim   string `json:"claim,omitempty"`   // token of the attempt that may write
	Changes int    `json:"changes,omitempty"` // number of changes so far

	Pending  string `json:"pending_grant,omitempty"` // URL of the NFVO's decision, until there is one
	Forceful bool   `json:"forceful,omitempty"`      // it is being cancelled at once

	Noticed nf.OccurrenceState `json:"noticed,omitempty"` // the last state that has a notice
}

// task is what an occurrence has to do.
type task struct {
	Before  nf.VNF          `json:"before"`           // the VNF before it
	After   nf.VNF          `json:"after"`            // the VNF when it is completed
	Inputs  map[string]any  `json:"inputs,omitempty"` // parameters of the package
	Attach  []nf.Attachment `json:"attach,omitempty"`
	Scaling []nf.Scaling    `json:"scaling,omitempty"`
	Cascade bool            `json:"cascade,omitempty"` // of a termination: first terminate the VNFs in the regions that the VNF has made

	Extra     map[string]any       `json:"extra,omitempty"`     // additional parameters, for scripts and the NFVO
	Secret    map[string]any       `json:"secret,omitempty"`    // additional parameters for scripts that may have credentials; none in a final state
	Workloads []nf.WorkloadCluster `json:"workloads,omitempty"` // clusters of Cluster API that become regions
	Heal      []string             `json:"heal,omitempty"`      // ids of components; empty: all
	Trace     string               `json:"trace,omitempty"`
	Grace     *time.Duration       `json:"grace,omitempty"`   // of a termination: the longest grace period of pods; nil: their own
	Confirm   string               `json:"confirm,omitempty"` // confirms that a change of the package deletes objects
	Found     []nf.VNFC            `json:"found,omitempty"`   // components, as the last attempt has seen them; nil: it has seen none
}

// effort is what the engine has done for an occurrence.
type effort struct {
	Forward string `json:"forward,omitempty"` // the last operation; empty: none has begun
	Undo    string `json:"undo,omitempty"`    // the last one that undoes it
	Outcome string `json:"outcome,omitempty"` // of an operation that was stopped: succeeded
}

// enter makes the occurrence enter a state.
func (r *record) enter(state nf.OccurrenceState, at time.Time) {
	if !at.After(r.Entered) {
		at = r.Entered.Add(time.Nanosecond) // of another replica, whose clock is ahead
	}
	r.State, r.Entered = state, at
}

// noticeOf returns the notice that an occurrence is in its state.
func noticeOf(r record, v nf.VNF) nf.Notice {
	o := r.Occurrence
	return nf.Notice{
		ID:   noticeID(o.Started, o.VNF, 1, fmt.Sprintf("%s-%03d-%s", o.ID, r.Changes, o.State)),
		Kind: nf.NoticeOccurrence, Time: o.Entered, VNF: shown(v), Occurrence: &o,
	}
}

// noticeID returns the id of a notice. The notices of a VNF sort by the time of their
// occurrence, and then by their rank and the rest.
func noticeID(at time.Time, vnf string, rank int, rest string) string {
	return fmt.Sprintf("%012x-%s-%d-%s", at.UnixMilli(), vnf, rank, rest)
}

// shown returns a VNF as notices have it.
func shown(v nf.VNF) nf.VNF {
	if v.Instantiated != nil {
		v.Instantiated = &nf.InstantiatedVNF{VNFCs: v.Instantiated.VNFCs}
	}
	return v
}

// noticeOps returns the op that stores a notice. There is none if it is stored.
func noticeOps(ctx context.Context, notices store.Table[nf.Notice], n nf.Notice) ([]store.Op, error) {
	_, err := notices.Get(ctx, n.ID)
	if err == nil || nf.KindOf(err) != nf.NotFound {
		return nil, err
	}
	op, err := notices.InsertOp(n.ID, n)
	return []store.Op{op}, err
}

// change is one change of an occurrence by an attempt.
type change struct {
	at    int                // it follows so many changes
	state nf.OccurrenceState // that the occurrence enters; empty: it stays in its state
	time  time.Time
	edit  func(*record)
	vnf   nf.VNF // for the notice
}

// apply makes the change, and returns the notice of its state.
func (c change) apply(r *record) (n nf.Notice, noticed bool) {
	r.Changes++
	if c.edit != nil {
		c.edit(r)
	}
	if c.state == "" || c.state == r.State && c.state == r.Noticed {
		return n, false
	}
	if c.state != r.State {
		r.enter(c.state, c.time)
	}
	r.Noticed = c.state
	return noticeOf(*r, c.vnf), true
}

// journal collects the changes of an occurrence by one attempt. They are written with the
// attempt's next writes, before the operation's record.
type journal struct {
	m       *Manager
	attempt *operation.Attempt
	record  record // with all changes
	changes []change
}

// bind makes the occurrence this attempt's. It returns operation.ErrTaken if another
// replica has claimed the attempt.
func (j *journal) bind(ctx context.Context) (err error) {
	token := j.attempt.Job().Token
	j.record, err = j.m.occurrences.Update(ctx, j.attempt.Op().VNF.Occurrence, func(r *record) error {
		if r.Claim == token {
			return nil
		}
		r.Claim = token
		return j.attempt.Held(ctx)
	})
	return operation.RecordError(err)
}

// add adds a change. The next write of the operation's record makes it.
func (j *journal) add(state nf.OccurrenceState, v nf.VNF, edit func(*record)) {
	c := change{at: j.record.Changes, state: state, time: j.attempt.Now(), edit: edit, vnf: v}
	j.record.VNFCs, j.record.Attempts = slices.Clone(j.record.VNFCs), slices.Clone(j.record.Attempts)
	c.apply(&j.record)
	j.changes = append(j.changes, c)
	last := len(j.changes)
	j.attempt.Also(func(ctx context.Context) ([]store.Op, error) {
		if last != len(j.changes) {
			return nil, nil // the last one writes all
		}
		return j.ops(ctx)
	})
}

// ops returns the ops that make the changes that are not stored: first the notices, and
// then the occurrence.
func (j *journal) ops(ctx context.Context) ([]store.Op, error) {
	r, read, err := j.m.occurrences.GetRevision(ctx, j.record.ID)
	if err != nil {
		return nil, err
	}
	if r.Claim != j.attempt.Job().Token {
		return nil, operation.ErrTaken
	}
	var ops []store.Op
	made := false
	for _, c := range j.changes {
		if c.at < r.Changes {
			continue
		}
		made = true
		n, noticed := c.apply(&r)
		if !noticed {
			continue
		}
		stored, err := noticeOps(ctx, j.m.notices, n)
		if err != nil {
			return nil, err
		}
		ops = append(ops, stored...)
	}
	if !made {
		return nil, nil
	}
	replaced, err := j.m.occurrences.ReplaceOp(r.ID, r, read)
	return append(ops, replaced), err
}

// save adds a change, and writes it.
func (j *journal) save(ctx context.Context, state nf.OccurrenceState, v nf.VNF, edit func(*record)) error {
	j.add(state, v, edit)
	err := j.attempt.Save(ctx, func(*nf.Operation) {})
	j.m.noticed.Send()
	return err
}
