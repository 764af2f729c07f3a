package nf_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestStepTitles holds the titles, which clients see.
func TestStepTitles(t *testing.T) {
	t.Parallel()
	job := nf.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: "edge", Name: "load"}
	hook := func(phase nf.Phase, event nf.HookEvent, undo bool) nf.Step {
		return nf.Step{StepID: nf.StepID{Phase: phase, Undo: undo, Event: event, Index: 1, Ref: job}, Of: 2}
	}
	stage := func(phase nf.Phase, undo bool) nf.Step {
		return nf.Step{StepID: nf.StepID{Phase: phase, Undo: undo, Stage: 3}, Of: 4, StageName: "databases"}
	}
	only := func(phase nf.Phase) nf.Step { return nf.Step{StepID: nf.StepID{Phase: phase}} }
	cases := map[string]nf.Step{
		"hold":                                only(nf.PhaseHold),
		"check what the project may use":      only(nf.PhasePermit),
		"undo: enter namespaces":              {StepID: nf.StepID{Phase: nf.PhaseEnter, Undo: true}},
		"apply 3/4 databases":                 stage(nf.PhaseApply, false),
		"undo: apply 3/4 databases":           stage(nf.PhaseApply, true),
		"settle 3/4 databases":                stage(nf.PhaseSettle, false),
		"prune stage 3":                       stage(nf.PhasePrune, false),
		"undo: delete stage 3":                stage(nf.PhaseDelete, true),
		"clear pre-install 1/2 Job load":      hook(nf.PhaseHookClear, nf.PreInstall, false),
		"make post-upgrade 1/2 Job load":      hook(nf.PhaseHookMake, nf.PostUpgrade, false),
		"undo: run pre-rollback 1/2 Job load": hook(nf.PhaseHookRun, nf.PreRollback, true),
		"run test 1/2 Job load":               hook(nf.PhaseHookRun, nf.TestRun, false),
		"clear what post-install hooks made":  {StepID: nf.StepID{Phase: nf.PhaseHookDiscard, Event: nf.PostInstall}},
		"clear what hooks made":               only(nf.PhaseHookDiscard),
		"clear what the tests made":           only(nf.PhaseTestDiscard),
		"find volume claims":                  only(nf.PhaseFindClaims),
		"delete volume claims":                only(nf.PhaseDeleteClaims),
		"keep volume claims":                  only(nf.PhaseKeepClaims),
		"orphan":                              only(nf.PhaseOrphan),
		"take over":                           only(nf.PhaseTakeOver),
		"leave former namespaces":             only(nf.PhaseLeaveFormer),
		"leave namespace":                     only(nf.PhaseLeave),
		"forget":                              only(nf.PhaseForget),
		"finish":                              only(nf.PhaseFinish),
		"check hosts":                         only(nf.PhaseCheckHosts),
		"remove workers":                      only(nf.PhaseRemoveWorkers),
		"build cluster":                       only(nf.PhaseBuild),
		"register region":                     only(nf.PhaseRegister),
		"terminate VNF instances":             only(nf.PhaseTerminate),
		"deregister region":                   only(nf.PhaseDeregister),
		"reset hosts":                         only(nf.PhaseResetHosts),
	}
	for want, step := range cases {
		if got := step.Title(); got != want {
			t.Errorf("the title of %+v is %q, want %q", step.StepID, got, want)
		}
		text, err := json.Marshal(step)
		var back nf.Step
		if err != nil || json.Unmarshal(text, &back) != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if diff := cmp.Diff(step, back); diff != "" {
			t.Errorf("%s does not survive the store (-want +got):\n%s", want, diff)
		}
	}
}

func TestHookEvents(t *testing.T) {
	t.Parallel()
	for event, want := range map[nf.HookEvent][2]bool{
		nf.PreInstall: {true, false}, nf.PreUpgrade: {true, false}, nf.PreRollback: {true, false}, nf.PreDelete: {true, false},
		nf.PostInstall: {false, true}, nf.PostUpgrade: {false, true}, nf.PostRollback: {false, true}, nf.PostDelete: {false, true}, nf.TestRun: {},
	} {
		if got := [2]bool{event.Pre(), event.Post()}; got != want {
			t.Errorf("%s comes before, and after: %v, want %v", event, got, want)
		}
	}
}
