package nf

import (
	"cmp"
	"fmt"
	"time"
)

// Phase is the action of a step.
type Phase string

// The phases of an instance's operations.
const (
	PhaseReserve           Phase = "reserve"             // reserves the region, the package and the namespaces
	PhasePermit            Phase = "permit"              // checks that the project may still use the resources of the next steps
	PhaseAcquireNamespaces Phase = "acquire_namespaces"  // creates and reserves namespaces
	PhaseApply             Phase = "apply"               // applies a stage
	PhaseWait              Phase = "wait"                // waits until a stage is ready
	PhaseHookDeleteOld     Phase = "hook_delete_old"     // deletes the objects that a hook's last run left
	PhaseHookCreate        Phase = "hook_create"         // applies a hook's object
	PhaseHookWait          Phase = "hook_wait"           // waits until the hook is done
	PhaseDeleteTestObjects Phase = "delete_test_objects" // deletes the objects that the tests created
	PhaseDeleteHookObjects Phase = "delete_hook_objects" // deletes the objects that the hooks of one event, or of all events, created
	PhaseSettle            Phase = "settle"              // waits until no machine refers to the templates that the next steps delete
	PhasePrune             Phase = "prune"               // deletes objects of an earlier stage that are no longer in the plan
	PhaseDelete            Phase = "delete"              // deletes a stage's objects
	PhaseFindClaims        Phase = "find_claims"         // finds the volume claims of StatefulSets
	PhaseDeleteClaims      Phase = "delete_claims"       // deletes the volume claims
	PhaseKeepClaims        Phase = "keep_claims"         // releases the volume claims
	PhaseOrphan            Phase = "orphan"              // releases all objects
	PhaseAdopt             Phase = "adopt"               // makes the objects of an adoption the instance's
	PhaseGiveBack          Phase = "give_back"           // restores the content of adopted objects, before they are orphaned
	PhaseSet               Phase = "set"                 // sets fields of objects
	PhaseEvict             Phase = "evict"               // evicts pods
	PhaseReleaseFormer     Phase = "release_former"      // releases namespaces that the plan no longer uses
	PhaseUnlist            Phase = "unlist"              // waits until A&AI has no object of the instance
	PhaseReleaseNetworks   Phase = "release_networks"    // releases all networks
	PhaseReleaseVolumes    Phase = "release_volumes"     // releases all volumes
	PhaseReleaseNamespaces Phase = "release_namespaces"  // releases all namespaces
	PhaseDeleteRecords     Phase = "delete_records"      // deletes the instance's records
	PhaseFinish            Phase = "finish"              // activates the result, and unlocks the instance
)

// The phases of a site's operations.
const (
	PhaseCreateMachines Phase = "create_machines"
	PhaseCheckHosts     Phase = "check_hosts"
	PhaseRemoveWorkers  Phase = "remove_workers"
	PhaseDeleteMachines Phase = "delete_machines"
	PhaseBuild          Phase = "build"
	PhaseRegister       Phase = "register"
	PhaseTerminate      Phase = "terminate"
	PhaseDeregister     Phase = "deregister"
	PhaseResetHosts     Phase = "reset_hosts"
)

// The phases of a network's operations, besides those of an instance's.
const (
	PhaseCheckHolders Phase = "check_holders" // finds out whether the network is in use again
	PhaseRestart      Phase = "restart"       // restarts the workloads that use the network
)

// The phases of a VNF's operations, besides those of an instance's.
const (
	PhaseGrant   Phase = "grant"   // asks for the grant
	PhaseScript  Phase = "script"  // runs a script of the VNF descriptor that is not a Job
	PhaseBegin   Phase = "begin"   // begins the operation on the instance
	PhaseStop    Phase = "stop"    // cancels the operation on the instance, and waits for its end
	PhaseObserve Phase = "observe" // finds the pods
)

// PhaseDiscard is a phase of a network service's operations: it terminates the members
// whose instantiation has failed.
const PhaseDiscard Phase = "discard"

// HookEvent is a point in an instance's life cycle at which hooks of its
// package run.
type HookEvent string

// The events: Helm's.
const (
	PreInstall   HookEvent = "pre-install"
	PostInstall  HookEvent = "post-install"
	PreUpgrade   HookEvent = "pre-upgrade"
	PostUpgrade  HookEvent = "post-upgrade"
	PreRollback  HookEvent = "pre-rollback"
	PostRollback HookEvent = "post-rollback"
	PreDelete    HookEvent = "pre-delete"
	PostDelete   HookEvent = "post-delete"
	TestRun      HookEvent = "test"
)

// Pre reports whether the hooks run before the operation's changes.
func (e HookEvent) Pre() bool {
	return e == PreInstall || e == PreUpgrade || e == PreRollback || e == PreDelete
}

// Post reports whether the hooks run after the operation's changes.
func (e HookEvent) Post() bool {
	return e == PostInstall || e == PostUpgrade || e == PostRollback || e == PostDelete
}

// StepID identifies a step of an operation. It is comparable, and unique within
// the operation.
type StepID struct {
	Phase Phase     `json:"phase"`
	Undo  bool      `json:"undo,omitempty"`  // part of the undo
	Stage int       `json:"stage,omitempty"` // of the plan, or of the inventory, from 1; 0: none
	Event HookEvent `json:"event,omitempty"` // of hooks
	Index int       `json:"index,omitempty"` // of a hook among those of its event, or of a turn of deletion before all stages, from 1
	Ref   Ref       `json:"ref,omitzero"`    // the hook's object
}

// Step is one idempotent part of an operation.
type Step struct {
	StepID

	Of        int         `json:"of,omitempty"`         // number of stages, or of hooks of the event
	StageName string      `json:"stage_name,omitempty"` // of a plan's stage
	Started   time.Time   `json:"started"`
	Finished  time.Time   `json:"finished,omitzero"`
	Message   string      `json:"message,omitempty"`
	Mentions  []Mentioned `json:"mentions,omitempty"`   // the mentions in Message
	Failed    bool        `json:"failed,omitempty"`     // its attempt failed; Message says why
	InFailure bool        `json:"in_failure,omitempty"` // the operation's failure contains Message
	Changes   int         `json:"changes,omitempty"`    // number of objects that the step changed; the changes have their own records
	Objects   int         `json:"objects,omitempty"`    // number of objects of the step
	Current   int         `json:"current,omitempty"`    // number of those objects that are ready
}

// OfHook reports whether the step belongs to one hook.
func (id StepID) OfHook() bool {
	return id.Phase == PhaseHookDeleteOld || id.Phase == PhaseHookCreate || id.Phase == PhaseHookWait
}

// Said returns the message with its mentions.
func (s Step) Said() Text { return Text{s.Message, s.Mentions} }

// Report sets the message of the step.
func (s *Step) Report(message string, mentions ...Mentioned) {
	s.Message, s.Mentions = message, mentions
}

// Title returns a title for people: "wait 1/2 databases", "undo: prune stage
// 3". No code parses it.
func (s Step) Title() string {
	if s.Undo {
		return "undo: " + s.title()
	}
	return s.title()
}

func (s Step) title() string {
	switch {
	case s.Of > 0 && (s.Phase == PhaseApply || s.Phase == PhaseWait):
		return fmt.Sprintf("%s %d/%d %s", s.Phase, s.Stage, s.Of, s.StageName)
	case s.Stage > 0 && s.Phase == PhaseTerminate:
		return "terminate " + s.StageName
	case s.Stage > 0 && (s.Phase == PhasePrune || s.Phase == PhaseDelete):
		return fmt.Sprintf("%s stage %d", s.Phase, s.Stage)
	case s.Index > 0 && (s.Phase == PhasePrune || s.Phase == PhaseDelete):
		return fmt.Sprintf("%s first, turn %d", s.Phase, s.Index)
	case s.OfHook():
		return fmt.Sprintf("%s %s %d/%d %s %s", s.Phase.title(), s.Event, s.Index, s.Of, s.Ref.Kind, s.Ref.Name)
	case s.Phase == PhaseScript:
		return "run script " + s.StageName
	case s.Phase == PhaseDeleteHookObjects && s.Event != "":
		return fmt.Sprintf("delete %s hook objects", s.Event)
	}
	return s.Phase.title()
}

func (p Phase) title() string {
	titles := map[Phase]string{
		PhaseReserve: "reserve resources", PhaseDeleteRecords: "delete records",
		PhasePermit: "check what the project may use", PhaseAcquireNamespaces: "acquire namespaces", PhaseReleaseFormer: "release former namespaces", PhaseReleaseNamespaces: "release namespaces",
		PhaseSettle: "wait for machines", PhaseHookDeleteOld: "delete old", PhaseHookCreate: "create", PhaseHookWait: "wait for", PhaseDeleteHookObjects: "delete hook objects", PhaseDeleteTestObjects: "delete test objects",
		PhaseFindClaims: "find volume claims", PhaseDeleteClaims: "delete volume claims", PhaseKeepClaims: "keep volume claims", PhaseAdopt: "adopt objects", PhaseGiveBack: "restore adopted objects", PhaseSet: "set fields", PhaseEvict: "evict pods",
		PhaseCreateMachines: "create machines", PhaseDeleteMachines: "delete machines",
		PhaseCheckHosts: "check hosts", PhaseRemoveWorkers: "remove workers", PhaseBuild: "build cluster", PhaseRegister: "register region",
		PhaseCheckHolders: "check holders", PhaseRestart: "restart workloads", PhaseReleaseNetworks: "release networks", PhaseReleaseVolumes: "release volumes",
		PhaseUnlist:    "delete objects in A&AI",
		PhaseDiscard:   "terminate failed members",
		PhaseTerminate: "terminate VNF instances", PhaseDeregister: "deregister region", PhaseResetHosts: "reset hosts",
	}
	return cmp.Or(titles[p], string(p))
}
