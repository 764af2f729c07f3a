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
		"reserve resources":                        only(nf.PhaseReserve),
		"check what the project may use":           only(nf.PhasePermit),
		"undo: acquire namespaces":                 {StepID: nf.StepID{Phase: nf.PhaseAcquireNamespaces, Undo: true}},
		"apply 3/4 databases":                      stage(nf.PhaseApply, false),
		"undo: apply 3/4 databases":                stage(nf.PhaseApply, true),
		"wait 3/4 databases":                       stage(nf.PhaseWait, false),
		"prune stage 3":                            stage(nf.PhasePrune, false),
		"undo: delete stage 3":                     stage(nf.PhaseDelete, true),
		"delete first, turn 1":                     {StepID: nf.StepID{Phase: nf.PhaseDelete, Index: 1}},
		"wait for machines":                        only(nf.PhaseSettle),
		"delete old pre-install 1/2 Job load":      hook(nf.PhaseHookDeleteOld, nf.PreInstall, false),
		"create post-upgrade 1/2 Job load":         hook(nf.PhaseHookCreate, nf.PostUpgrade, false),
		"undo: wait for pre-rollback 1/2 Job load": hook(nf.PhaseHookWait, nf.PreRollback, true),
		"wait for test 1/2 Job load":               hook(nf.PhaseHookWait, nf.TestRun, false),
		"delete post-install hook objects":         {StepID: nf.StepID{Phase: nf.PhaseDeleteHookObjects, Event: nf.PostInstall}},
		"delete hook objects":                      only(nf.PhaseDeleteHookObjects),
		"delete test objects":                      only(nf.PhaseDeleteTestObjects),
		"find volume claims":                       only(nf.PhaseFindClaims),
		"delete volume claims":                     only(nf.PhaseDeleteClaims),
		"keep volume claims":                       only(nf.PhaseKeepClaims),
		"orphan":                                   only(nf.PhaseOrphan),
		"adopt objects":                            only(nf.PhaseAdopt),
		"release former namespaces":                only(nf.PhaseReleaseFormer),
		"release namespaces":                       only(nf.PhaseReleaseNamespaces),
		"delete records":                           only(nf.PhaseDeleteRecords),
		"finish":                                   only(nf.PhaseFinish),
		"check hosts":                              only(nf.PhaseCheckHosts),
		"remove workers":                           only(nf.PhaseRemoveWorkers),
		"build cluster":                            only(nf.PhaseBuild),
		"register region":                          only(nf.PhaseRegister),
		"terminate VNF instances":                  only(nf.PhaseTerminate),
		"deregister region":                        only(nf.PhaseDeregister),
		"reset hosts":                              only(nf.PhaseResetHosts),
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
