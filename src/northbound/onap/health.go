package onap

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ONAP's words for how a run of tests goes.
const (
	runRunning   = "Running"
	runSucceeded = "Succeeded"
	runFailed    = "Failed"
	runUnknown   = "Unknown"
)

// runSummary is a run of an instance's tests. Some clients refuse further fields.
type runSummary struct {
	ID     string `json:"healthcheck-id"`
	Status string `json:"status"`
}

// runList is all runs of an instance's tests.
type runList struct {
	Instance string       `json:"instance-id"`
	Runs     []runSummary `json:"healthcheck-summary"`
	Hooks    []Hook       `json:"hooks"`
}

// runDetail is a run with each of its tests.
type runDetail struct {
	Instance string `json:"instance-id"`
	ID       string `json:"healthcheck-id"`
	Status   string `json:"status"`
	Suite    suite  `json:"test-suite"`
}

type suite struct {
	StartedAt   moment
	CompletedAt moment
	Results     []testResult
}

type testResult struct {
	Started   moment `json:"started_at"`
	Completed moment `json:"completed_at"`
	Status    string `json:"status"`
	Name      string `json:"name"`

	place string // among the tests
}

// moment is a time as Helm writes it: the zero time is an empty text.
type moment struct{ time.Time }

// MarshalJSON writes the time.
func (m moment) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte(`""`), nil
	}
	return json.Marshal(m.UTC())
}

func (a *API) healthRoutes(r *mux.Router) {
	const all = "/v1/instance/{instance}/healthcheck"
	a.on(r, http.MethodPost, all, a.beginRun)
	a.on(r, http.MethodGet, all, a.listRuns)
	a.on(r, http.MethodGet, all+"/{healthcheck}", a.getRun)
	a.on(r, http.MethodDelete, all+"/{healthcheck}", a.deleteRun)
	a.on(r, http.MethodGet, "/v1/healthcheck", a.serviceHealth)
}

func (a *API) beginRun(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Getting instance: Get Instance", err)
	}
	op, err := a.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return a.cfg.Instances.Test(ctx, v.ID, nf.TestRequest{Options: nf.Options{OnFailure: nf.Keep, Trace: a.cfg.Trace(r)}})
	})
	if err != nil {
		return fail("Starting healthcheck", err)
	}
	run := bundle.Run{ID: a.cfg.NewID(), Instance: v.id, Operation: op.ID, Created: a.cfg.Clock().UTC()}
	if err := a.ledger().Begin(r.Context(), run); err != nil {
		return fail("Creating Instance DB Entry", err)
	}
	return answer(w, http.StatusCreated, runSummary{ID: run.ID, Status: runRunning})
}

func (a *API) listRuns(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vnfOf(r)
	if err != nil {
		return fail("Getting Instance data: Get Instance", err)
	}
	runs, err := a.ledger().Runs(r.Context(), v.id)
	if err != nil {
		return fail("Getting Healthcheck data", err)
	}
	hooks, err := a.cfg.Live.Hooks(r.Context(), v.Instance)
	if err != nil {
		return fail("Getting Instance data", err)
	}
	out := runList{Instance: v.id, Runs: []runSummary{}, Hooks: hooks}
	for _, run := range runs {
		op, err := a.runOperation(r.Context(), run)
		if err != nil {
			return fail("Getting Healthcheck data", err)
		}
		out.Runs = append(out.Runs, runSummary{ID: run.ID, Status: runStatus(op)})
	}
	return answer(w, http.StatusOK, out)
}

// runOf reads the run of a path, and how it goes.
func (a *API) runOf(r *http.Request) (v vnf, run bundle.Run, op nf.Operation, err error) {
	v, err = a.vnfOf(r)
	if err == nil {
		run, err = a.ledger().Run(r.Context(), v.id, mux.Vars(r)["healthcheck"])
	}
	if err == nil {
		op, err = a.runOperation(r.Context(), run)
	}
	return v, run, op, err
}

// runOperation returns the operation that a run is. One that is not kept any
// more is empty: nobody knows what came of it.
func (a *API) runOperation(ctx context.Context, run bundle.Run) (nf.Operation, error) {
	op, err := a.cfg.Operations.Operation(ctx, run.Operation)
	if nf.KindOf(err) == nf.NotFound {
		return nf.Operation{}, nil
	}
	return op, err
}

func (a *API) getRun(w http.ResponseWriter, r *http.Request) error {
	_, run, op, err := a.runOf(r)
	if err != nil {
		return fail("Error retrieving Healthcheck data", err)
	}
	detail := runDetail{Instance: run.Instance, ID: run.ID, Status: runStatus(op)}
	detail.Suite = suite{StartedAt: moment{run.Created}, CompletedAt: moment{op.Finished}, Results: results(op)}
	return answer(w, http.StatusOK, detail)
}

// deleteRun forgets a run. One that is not over is stopped; what its tests have
// made goes with the operation's end.
func (a *API) deleteRun(w http.ResponseWriter, r *http.Request) error {
	v, run, op, err := a.runOf(r)
	if err != nil {
		return fail("Error querying Healthcheck status: Error retrieving Healthcheck data", err)
	}
	if op.ID != "" && !op.State.Final() {
		_, err := a.cfg.Operations.Cancel(r.Context(), op.ID)
		if err != nil && nf.KindOf(err) != nf.Conflict { // it has ended by itself
			return fail("Removing hooks failed with errors", err)
		}
	} else if err := a.mayChange(r, v); err != nil {
		return fail("Removing Healthcheck in DB", err)
	}
	if err := a.ledger().End(r.Context(), run); err != nil {
		return fail("Removing Healthcheck in DB", err)
	}
	return done(w, http.StatusAccepted)
}

func runStatus(op nf.Operation) string {
	switch op.State {
	case nf.Queued, nf.Running:
		return runRunning
	case nf.Succeeded:
		return runSucceeded
	case nf.OperationFailed:
		return runFailed
	case nf.OperationCancelled:
	}
	return runUnknown
}

// results returns what came of each test that an operation has begun. The object
// of a test is made in one step of it, and run in the next.
func results(op nf.Operation) []testResult {
	out := []testResult{}
	for _, step := range op.Steps {
		// "make test 1/2 Pod web-test"
		words := strings.Fields(step.Name)
		if len(words) != 5 || words[1] != "test" || words[0] == "clear" {
			continue
		}
		name, status := words[4], stepStatus(op, step)
		i := slices.IndexFunc(out, func(t testResult) bool { return t.Name == name && t.place == words[2] })
		if i < 0 {
			out, i = append(out, testResult{Started: moment{step.Started}, Name: name, place: words[2]}), len(out)
		}
		if out[i].Status == runFailed {
			continue // it could not be made
		}
		if out[i].Status = status; words[0] == "make" && status == runSucceeded {
			out[i].Status = unfinished(op)
		} else {
			out[i].Completed = moment{step.Finished}
		}
	}
	return out
}

func stepStatus(op nf.Operation, step nf.Step) string {
	switch {
	case step.Failed || op.Failure != nil && op.Failure.Step == step.Name:
		return runFailed
	case !step.Finished.IsZero():
		return runSucceeded
	}
	return unfinished(op)
}

// unfinished is how a test goes that nobody has seen the end of.
func unfinished(op nf.Operation) string {
	if op.State.Final() {
		return runUnknown
	}
	return runRunning
}

// serviceHealth tells whether all that the service depends on is well.
func (a *API) serviceHealth(w http.ResponseWriter, r *http.Request) error {
	for _, name := range slices.Sorted(maps.Keys(a.cfg.Checks)) {
		if err := a.cfg.Checks[name](r.Context()); err != nil {
			a.cfg.Logger.WarnContext(r.Context(), "the service is not well", "check", name, "error", err)
			return failAs("Healthcheck of "+name+" failed", nf.E(nf.Unreachable, "check", name, err))
		}
	}
	return done(w, http.StatusOK)
}
