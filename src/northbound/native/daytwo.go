package native

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// DayTwo is what the API asks to have done with what is up. All of it returns an
// operation that goes on without the caller; nf.Busy while another operation of
// the instance runs.
type DayTwo interface {
	// Adopt accepts that a release which runs in a region becomes an instance;
	// nf.NotFound when there is no such release, nf.Conflict when it cannot be
	// taken over.
	Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error)
	// Configure accepts other amendments of an instance.
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	// Test accepts a run of the tests of an instance's package; nf.Conflict when
	// it has none.
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
}

// amendment is an amendment of an instance as clients see it.
type amendment struct {
	Name       string            `json:"name"`
	Package    string            `json:"csar_id"`
	Parameters map[string]any    `json:"parameters,omitempty"`
	Overrides  map[string]string `json:"set,omitempty"`
}

// fromAmendments returns amendments as they may be shown.
func fromAmendments(all []nf.Amendment, sensitive []string) []amendment {
	return each(all, func(am nf.Amendment) amendment {
		shown := am.Inputs.Mask(sensitive)
		return amendment{Name: am.Name, Package: am.Package, Parameters: shown.Parameters, Overrides: shown.Overrides}
	})
}

// amendmentPut is the body of a request for an amendment.
type amendmentPut struct {
	manner

	Package    string            `json:"csar_id"`
	Parameters map[string]any    `json:"parameters"`
	Overrides  map[string]string `json:"set"`
}

func (a *API) putAmendment(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[amendmentPut](a, r)
	if err != nil {
		return err
	}
	if err := errors.Join(refuseMask("parameters", body.Parameters), refuseMask("set", texts(body.Overrides))); err != nil {
		return err
	}
	wanted := nf.Amendment{
		Name: mux.Vars(r)["amendment"], Package: body.Package, Inputs: nf.Inputs{Parameters: body.Parameters, Overrides: body.Overrides},
	}
	return a.configure(w, r, body.manner, key, func(all []nf.Amendment, at int) ([]nf.Amendment, error) {
		if at < 0 {
			return append(all, wanted), nil
		}
		all[at] = wanted
		return all, nil
	})
}

func (a *API) deleteAmendment(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	m := manner{
		OnFailure: nf.OnFailure(query.Get("onFailure")), OnUnreachable: query.Get("on_unreachable"),
		Confirm: query.Get("confirm"), Wait: query.Get("wait"),
	}
	if query.Has("timeout") {
		m.Timeout = query.Get("timeout")
	}
	key, err := a.key(r, nil)
	if err != nil {
		return err
	}
	name := mux.Vars(r)["amendment"]
	return a.configure(w, r, m, key, func(all []nf.Amendment, at int) ([]nf.Amendment, error) {
		if at < 0 {
			return nil, nf.E(nf.NotFound, "remove", "amendment "+name, nil)
		}
		return slices.Delete(all, at, at+1), nil
	})
}

// configure changes the amendments of the path's instance, and answers as a
// change of the instance itself. The edit is given a list of its own, and where
// in it the path's amendment is, or -1.
func (a *API) configure(w http.ResponseWriter, r *http.Request, m manner, key nf.RequestKey, edit func(all []nf.Amendment, at int) ([]nf.Amendment, error)) error {
	if a.cfg.DayTwo == nil {
		return nf.E(nf.Unsupported, "configure", "the instance", errors.New("this service amends nothing"))
	}
	opts, err := a.options(r, m, key)
	if err != nil {
		return err
	}
	vars := mux.Vars(r)
	op, err := a.cfg.DayTwo.Configure(r.Context(), vars["vnf_id"], nf.ConfigureRequest{Options: opts, Edit: func(s *nf.Spec) error {
		at := slices.IndexFunc(s.Amendments, func(am nf.Amendment) bool { return am.Name == vars["amendment"] })
		changed, err := edit(slices.Clone(s.Amendments), at)
		if err != nil {
			return err
		}
		s.Amendments = changed
		return nil
	}})
	if err != nil {
		return err
	}
	return a.answerApplied(w, r, op, http.StatusOK)
}

// testRun is the body of a request to run tests.
type testRun struct {
	OnUnreachable string `json:"on_unreachable"`
	Timeout       any    `json:"timeout"`
}

// testInstance answers with the operation when every test has been run, whatever
// came of them: that a test has failed is what was asked for, and no failure to
// answer.
func (a *API) testInstance(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.DayTwo == nil {
		return nf.E(nf.Unsupported, "test", "the instance", errors.New("this service runs no tests"))
	}
	body, key, err := readIfAny[testRun](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, manner{OnUnreachable: body.OnUnreachable, Timeout: body.Timeout}, key)
	if err != nil {
		return err
	}
	op, err := a.cfg.DayTwo.Test(r.Context(), mux.Vars(r)["vnf_id"], nf.TestRequest{Options: opts})
	if err != nil {
		return err
	}
	op, done, err := a.await(w, r, op, ended)
	passed := verdict(op)
	switch {
	case err != nil && passed == nil:
		return refuseOperation(w, r, op, err)
	case !done && err == nil:
		return northbound.Answer(w, http.StatusAccepted, fromOperation(op))
	}
	w.Header().Set("Location", northbound.OperationPath(op.ID))
	return northbound.Answer(w, http.StatusOK, fromOperation(op))
}

// verdict tells whether the tests of an operation have passed; nil when they
// have not all been run, or it runs none.
func verdict(op nf.Operation) *bool {
	failed := slices.ContainsFunc(op.Steps, func(s nf.Step) bool { return s.Failed && testStep.MatchString(s.Name) })
	switch {
	case op.Verb != nf.Test:
	case op.State == nf.Succeeded:
		return new(true)
	case op.State == nf.OperationFailed && failed && op.Failure != nil && op.Failure.Kind == nf.Failed:
		return new(false)
	}
	return nil
}

// test is one test of an instance as clients see it.
type test struct {
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Passed     *bool     `json:"passed,omitempty"` // nil: it has not ended
	Message    string    `json:"message,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// testStep matches the steps of one test: before it, its making, and its run.
var testStep = regexp.MustCompile(`^(clear|make|run) test ([0-9]+/[0-9]+) ([^ ]+) ([^ ]+)$`)

// testsOf returns the tests that an operation has begun, as its steps tell it.
func testsOf(op nf.Operation) []test {
	if op.Verb != nf.Test {
		return nil
	}
	out := []test{}
	place := ""
	for _, s := range op.Steps {
		m := testStep.FindStringSubmatch(s.Name)
		if m == nil {
			continue
		}
		if m[2] != place {
			place = m[2]
			out = append(out, test{Kind: m[3], Name: m[4], StartedAt: s.Started})
		}
		t := &out[len(out)-1]
		if s.Failed && (t.Passed == nil || *t.Passed) {
			t.Passed, t.Message = new(false), s.Message
		}
		if m[1] != "run" || s.Finished.IsZero() {
			continue
		}
		if t.FinishedAt = s.Finished; t.Passed == nil {
			t.Passed, t.Message = new(true), s.Message
		}
	}
	return out
}
