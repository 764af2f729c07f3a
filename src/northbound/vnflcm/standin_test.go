package vnflcm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
)

// standIn is a ledger of VNFs in memory. Occurrences stay in the state STARTING until
// the test changes it.
type standIn struct {
	mu          sync.Mutex
	ids         int
	vnfs        map[string]nf.VNF
	occurrences map[string]nf.Occurrence
	accepted    map[nf.RequestKey]string // occurrences, by the keys of their requests
	last        any                      // the last request
	lastKey     nf.RequestKey
	from        nf.Cursor // of the last list
	fails       error     // of every change, if not nil
}

var (
	_ vnflcm.VNFs          = (*standIn)(nil)
	_ vnflcm.Changes       = (*standIn)(nil)
	_ vnflcm.Modifications = (*standIn)(nil)
	_ vnflcm.Occurrences   = (*standIn)(nil)
	_ vnflcm.Recovery      = (*standIn)(nil)
)

const knownVNFD = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"

func epoch() time.Time { return time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC) }

func newStandIn() *standIn {
	return &standIn{vnfs: map[string]nf.VNF{}, occurrences: map[string]nf.Occurrence{}, accepted: map[nf.RequestKey]string{}}
}

func (s *standIn) id(kind string) string {
	s.ids++
	return fmt.Sprintf("%s-%04d", kind, s.ids)
}

func (s *standIn) Create(_ context.Context, v nf.VNF) (nf.VNF, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.VNFD.ID != knownVNFD {
		return nf.VNF{}, nf.E(nf.Unsupported, "create", "VNF", errors.New("no enabled package has the VNFD "+v.VNFD.ID))
	}
	s.last = v
	v.ID, v.Package = s.id("vnf"), "pkg"
	v.VNFD = nf.VNFD{ID: knownVNFD, Provider: "Example", Product: "Sample VNF", SoftwareVersion: "1.0", Version: "2.1"}
	s.vnfs[v.ID] = v
	return v, nil
}

func (s *standIn) VNF(_ context.Context, id string) (nf.VNF, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id)
}

func (s *standIn) find(id string) (nf.VNF, error) {
	v, found := s.vnfs[id]
	if !found {
		return v, nf.E(nf.NotFound, "find", "VNF "+id, nil)
	}
	return v, nil
}

func (s *standIn) VNFsFrom(_ context.Context, from nf.Cursor) iter.Seq2[nf.VNF, error] {
	s.from = from
	return sorted(s.vnfs, from)
}

// sorted yields the values of a map that a cursor selects by their keys, as an index does.
func sorted[T interface{ Summary() nf.Summary }](of map[string]T, from nf.Cursor) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(of)) {
			if id > from.After && from.Selects(of[id].Summary()) && !yield(of[id], nil) {
				return
			}
		}
	}
}

func (s *standIn) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.find(id)
	switch {
	case err != nil:
		return err
	case v.Instantiated != nil:
		return nf.E(nf.Conflict, "delete", "VNF "+id, errors.New("it is instantiated"))
	}
	delete(s.vnfs, id)
	return nil
}

// ready returns a VNF that can have an occurrence: one that is instantiated, or one that is
// not. It returns the occurrence of a request that was accepted before.
func (s *standIn) ready(id string, operation nf.OccurrenceOperation, key nf.RequestKey) (v nf.VNF, o nf.Occurrence, repeated bool, err error) {
	if occurrence, found := s.accepted[key]; found {
		return v, s.occurrences[occurrence], true, nil
	}
	v, err = s.find(id)
	switch {
	case s.fails != nil:
		err = s.fails
	case err != nil:
	case v.Occurrence != "":
		err = nf.E(nf.Busy, "change", "VNF "+id, errors.New("another occurrence is in progress"))
	case operation != nf.OccurrenceModify && (v.Instantiated != nil) == (operation == nf.OccurrenceInstantiate):
		err = nf.E(nf.Conflict, "change", "VNF "+id, errors.New("its state does not allow it"))
	}
	return v, o, false, err
}

// begin starts an occurrence of a VNF.
func (s *standIn) begin(id string, operation nf.OccurrenceOperation, common nf.VNFRequest, r any) (nf.Occurrence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !common.Check {
		s.last, s.lastKey = r, common.Key
	}
	v, o, repeated, err := s.ready(id, operation, common.Key)
	if err != nil || repeated || common.Check {
		return o, err
	}
	o = nf.Occurrence{ID: s.id("occ"), VNF: id, Operation: operation, State: nf.OccurrenceStarting, Entered: epoch(), Started: epoch(), Params: common.Params}
	v.Occurrence = o.ID
	s.occurrences[o.ID], s.vnfs[id] = o, v
	if common.Key.Key != "" {
		s.accepted[common.Key] = o.ID
	}
	return o, nil
}

func (s *standIn) Instantiate(_ context.Context, id string, r nf.InstantiateVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceInstantiate, r.VNFRequest, r)
}

func (s *standIn) Terminate(_ context.Context, id string, r nf.TerminateVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceTerminate, r.VNFRequest, r)
}

func (s *standIn) Scale(_ context.Context, id string, r nf.ScaleVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceScale, r.VNFRequest, r)
}

func (s *standIn) Heal(_ context.Context, id string, r nf.HealVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceHeal, r.VNFRequest, r)
}

func (s *standIn) Modify(_ context.Context, id string, r nf.ModifyVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceModify, r.VNFRequest, r)
}

func (s *standIn) Connect(_ context.Context, id string, r nf.ConnectVNFRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceConnectivity, r.VNFRequest, r)
}

func (s *standIn) ChangePackage(_ context.Context, id string, r nf.ChangeVNFPackageRequest) (nf.Occurrence, error) {
	return s.begin(id, nf.OccurrenceCurrentPackage, r.VNFRequest, r)
}

func (s *standIn) Occurrence(_ context.Context, id string) (nf.Occurrence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, found := s.occurrences[id]
	if !found {
		return o, nf.E(nf.NotFound, "find", "occurrence "+id, nil)
	}
	return o, nil
}

func (s *standIn) OccurrencesFrom(_ context.Context, from nf.Cursor) iter.Seq2[nf.Occurrence, error] {
	s.from = from
	return sorted(s.occurrences, from)
}

// enter changes the state of an occurrence. In a final state, the VNF is free again.
func (s *standIn) enter(id string, state nf.OccurrenceState, edit ...func(*nf.Occurrence)) nf.Occurrence {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.occurrences[id]
	o.State, o.Entered = state, epoch().Add(time.Minute)
	for _, f := range edit {
		f(&o)
	}
	s.occurrences[id] = o
	if v := s.vnfs[o.VNF]; state.Final() {
		v.Occurrence = ""
		s.vnfs[o.VNF] = v
	}
	return o
}

// failed returns an error unless an occurrence is FAILED_TEMP.
func (s *standIn) failed(ctx context.Context, id string) error {
	o, err := s.Occurrence(ctx, id)
	if err == nil && o.State != nf.OccurrenceFailedTemp {
		err = nf.E(nf.Conflict, "change", "occurrence "+id, errors.New("it is "+string(o.State)))
	}
	return err
}

func (s *standIn) Retry(ctx context.Context, id string, key nf.RequestKey) error {
	if err := s.failed(ctx, id); err != nil {
		return err
	}
	s.lastKey = key
	s.enter(id, nf.OccurrenceProcessing)
	return nil
}

func (s *standIn) Rollback(ctx context.Context, id string, key nf.RequestKey) error {
	if err := s.failed(ctx, id); err != nil {
		return err
	}
	if o, _ := s.Occurrence(ctx, id); !o.CanUndo {
		return nf.E(nf.Unsupported, "roll back", "occurrence "+id, errors.New("it has no inverse"))
	}
	s.lastKey = key
	s.enter(id, nf.OccurrenceRollingBack)
	return nil
}

func (s *standIn) Fail(ctx context.Context, id string) (nf.Occurrence, error) {
	if err := s.failed(ctx, id); err != nil {
		return nf.Occurrence{}, err
	}
	return s.enter(id, nf.OccurrenceFailed), nil
}

func (s *standIn) Cancel(ctx context.Context, id string, forceful bool) error {
	o, err := s.Occurrence(ctx, id)
	switch {
	case err != nil:
		return err
	case !o.State.Running():
		return nf.E(nf.Conflict, "cancel", "occurrence "+id, errors.New("it is not running"))
	}
	s.last = forceful
	s.enter(id, o.State, func(o *nf.Occurrence) { o.Cancel = true })
	return nil
}
