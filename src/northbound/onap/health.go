package onap

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// ONAP's status words of a test run.
const (
	runRunning   = "Running"
	runSucceeded = "Succeeded"
	runFailed    = "Failed"
	runUnknown   = "Unknown"
)

// runSummary is a test run of an instance. Some clients reject additional
// fields.
type runSummary struct {
	ID     string `json:"healthcheck-id"`
	Status string `json:"status"`
}

// runList lists all test runs of an instance.
type runList struct {
	Instance string       `json:"instance-id"`
	Runs     []runSummary `json:"healthcheck-summary"`
	Hooks    []hook       `json:"hooks"`
}

// runDetail is a test run with the results of its tests.
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

	index int // index of the test
}

// moment is a time in Helm's format: the zero time is an empty string.
type moment struct{ time time.Time }

// MarshalJSON writes the time.
func (m moment) MarshalJSON() ([]byte, error) {
	if m.time.IsZero() {
		return []byte(`""`), nil
	}
	return json.Marshal(m.time.UTC())
}

// testRuns serves the test runs of instances.
type testRuns struct {
	vnfs    *vnfs
	engine  Changes
	runner  *runner
	live    Live
	records Records
	newID   func() string
	clock   func() time.Time
}

func (ts testRuns) routes(on route) {
	const all = "/v1/instance/{instance}/healthcheck"
	on(http.MethodPost, all, ts.create)
	on(http.MethodGet, all, ts.list)
	on(http.MethodGet, all+"/{healthcheck}", ts.get)
	on(http.MethodDelete, all+"/{healthcheck}", ts.remove)
}

func (ts testRuns) create(w http.ResponseWriter, r *http.Request) error {
	v, err := ts.vnfs.of(r)
	if err != nil {
		return fail("Getting instance: Get Instance", err)
	}
	records, err := ts.records.Change(r.Context(), v.Instance)
	if err != nil {
		return fail("Starting healthcheck", err)
	}
	op, err := ts.runner.begin(r.Context(), func(ctx context.Context) (nf.Operation, error) {
		return ts.engine.Test(ctx, v.ID, nf.TestRequest{Empty: true, Options: nf.Options{OnFailure: nf.Keep, Trace: ts.runner.trace(r)}})
	})
	if err != nil {
		return fail("Starting healthcheck", err)
	}
	run := bundle.Run{ID: ts.newID(), Instance: v.id, Operation: op.ID, Created: ts.clock().UTC()}
	if err := records.AddRun(r.Context(), run); err != nil {
		return fail("Creating Instance DB Entry", err)
	}
	return answer(w, http.StatusCreated, runSummary{ID: run.ID, Status: runRunning})
}

func (ts testRuns) list(w http.ResponseWriter, r *http.Request) error {
	v, err := ts.vnfs.of(r)
	if err != nil {
		return fail("Getting Instance data: Get Instance", err)
	}
	records, err := ts.records.Read(r.Context(), v.Instance)
	if err != nil {
		return fail("Getting Healthcheck data", err)
	}
	runs, err := records.Runs(r.Context(), v.id)
	if err != nil {
		return fail("Getting Healthcheck data", err)
	}
	hooks, err := hooksOf(r.Context(), ts.live, v.Instance)
	if err != nil {
		return fail("Getting Instance data", err)
	}
	out := runList{Instance: v.id, Runs: []runSummary{}, Hooks: hooks}
	for _, run := range runs {
		op, err := ts.operation(r.Context(), run)
		if err != nil {
			return fail("Getting Healthcheck data", err)
		}
		out.Runs = append(out.Runs, runSummary{ID: run.ID, Status: runStatus(op)})
	}
	return answer(w, http.StatusOK, out)
}

// runOf returns the run of a request's path, and its operation.
func (ts testRuns) of(r *http.Request) (v vnf, run bundle.Run, op nf.Operation, err error) {
	if v, err = ts.vnfs.of(r); err != nil {
		return v, run, op, err
	}
	records, err := ts.records.Read(r.Context(), v.Instance)
	if err == nil {
		run, err = records.Run(r.Context(), v.id, mux.Vars(r)["healthcheck"])
	}
	if err == nil {
		op, err = ts.operation(r.Context(), run)
	}
	return v, run, op, err
}

// runOperation returns the operation of a run, or an empty operation if it was
// deleted and its result is unknown.
func (ts testRuns) operation(ctx context.Context, run bundle.Run) (nf.Operation, error) {
	op, err := ts.runner.operations.Operation(ctx, run.Operation)
	if nf.KindOf(err) == nf.NotFound {
		return nf.Operation{}, nil
	}
	return op, err
}

func (ts testRuns) get(w http.ResponseWriter, r *http.Request) error {
	_, run, op, err := ts.of(r)
	if err != nil {
		return fail("Error retrieving Healthcheck data", err)
	}
	detail := runDetail{Instance: run.Instance, ID: run.ID, Status: runStatus(op)}
	detail.Suite = suite{StartedAt: moment{run.Created}, CompletedAt: moment{op.Finished}, Results: results(op)}
	return answer(w, http.StatusOK, detail)
}

// deleteRun deletes a run. It cancels a run that has not ended; the operation
// then deletes the objects of the tests.
func (ts testRuns) remove(w http.ResponseWriter, r *http.Request) error {
	v, run, op, err := ts.of(r)
	if err != nil {
		return fail("Error querying Healthcheck status: Error retrieving Healthcheck data", err)
	}
	records, err := ts.records.Change(r.Context(), v.Instance)
	if err != nil {
		return fail("Removing Healthcheck in DB", err)
	}
	if op.ID != "" && !op.State.Final() {
		_, err := ts.runner.operations.Cancel(r.Context(), op.ID)
		if err != nil && nf.KindOf(err) != nf.Conflict { // the operation has ended
			return fail("Removing hooks failed with errors", err)
		}
	}
	if err := records.DeleteRun(r.Context(), run); err != nil {
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

// results returns the result of each test that an operation has started. One
// step creates a test's object, and the next step runs the test.
func results(op nf.Operation) []testResult {
	out := []testResult{}
	for _, step := range op.Steps {
		if step.Event != nf.TestRun || step.Phase != nf.PhaseHookCreate && step.Phase != nf.PhaseHookWait {
			continue
		}
		status := stepStatus(op, step)
		i := slices.IndexFunc(out, func(t testResult) bool { return t.index == step.Index })
		if i < 0 {
			out, i = append(out, testResult{Started: moment{step.Started}, Name: step.Ref.Name, index: step.Index}), len(out)
		}
		if out[i].Status == runFailed {
			continue // its object could not be created
		}
		if out[i].Status = status; step.Phase == nf.PhaseHookCreate && status == runSucceeded {
			out[i].Status = unfinished(op)
		} else {
			out[i].Completed = moment{step.Finished}
		}
	}
	return out
}

func stepStatus(op nf.Operation, step nf.Step) string {
	switch {
	case step.Failed:
		return runFailed
	case !step.Finished.IsZero():
		return runSucceeded
	}
	return unfinished(op)
}

// unfinished returns the status of a test without a recorded end.
func unfinished(op nf.Operation) string {
	if op.State.Final() {
		return runUnknown
	}
	return runRunning
}

// checks serves the health of the service.
type checks struct {
	checks map[string]northbound.Check
	logger *slog.Logger
}

func (cs checks) routes(on route) { on(http.MethodGet, "/v1/healthcheck", cs.get) }

// get answers whether all dependencies of the service work.
func (cs checks) get(w http.ResponseWriter, r *http.Request) error {
	for _, name := range slices.Sorted(maps.Keys(cs.checks)) {
		if err := cs.checks[name](r.Context()); err != nil {
			cs.logger.WarnContext(r.Context(), "the service is not healthy", "check", name, "error", err)
			return failAs("Healthcheck of "+name+" failed", nf.E(nf.Unreachable, "check", name, err))
		}
	}
	return done(w, http.StatusOK)
}
