package accesstest

import (
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Outcome is the expected outcome of a call.
type Outcome string

// The outcomes, and their HTTP status codes.
const (
	Allowed         Outcome = "allowed"         // the call's own status
	Hidden          Outcome = "hidden"          // 404, as for an object that does not exist
	Forbidden       Outcome = "forbidden"       // 403
	Unauthenticated Outcome = "unauthenticated" // 401
)

// Call is a method of the guard and the permissions that it requires.
type Call struct {
	Name string        // of the guard's method
	See  nf.Permission // without it the object is hidden
	Need nf.Permission // without it the call is denied; empty: See suffices
	Of   Subject
}

// Subject is the kind of object of a call, which decides in which scope
// permissions are checked.
type Subject string

// The subjects.
const (
	Region   Subject = "region"   // in its region, without a project
	Package  Subject = "package"  // in its project, without a region
	Instance Subject = "instance" // in its project and its region; also for its operations
	Service  Subject = "service"  // without a project or a region
	New      Subject = "new"      // a new instance: checks its region, its package, then itself
)

// Calls returns every call. Retry and Undo are those of a failed upgrade;
// Administer stands for all calls about encryption keys and backups.
func Calls() []Call {
	region := func(name string, need nf.Permission) Call { return Call{name, nf.ReadRegion, need, Region} }
	pkg := func(name string, need nf.Permission) Call { return Call{name, nf.ReadPackage, need, Package} }
	instance := func(name string, need nf.Permission) Call { return Call{name, nf.ReadInstance, need, Instance} }
	return []Call{
		region("Region", ""), region("RegionCapabilities", ""), region("UpdateRegion", nf.WriteRegion), region("RemoveRegion", nf.WriteRegion),
		{Name: "Register", Need: nf.WriteRegion, Of: Region}, {Name: "Enlist", Need: nf.WriteRegion, Of: Region},
		pkg("Package", ""), pkg("Content", ""), pkg("RemovePackage", nf.WritePackage), pkg("UpdatePackage", nf.WritePackage),
		{Name: "Upload", Need: nf.WritePackage, Of: Package}, {Name: "CreatePackage", Need: nf.WritePackage, Of: Package},
		instance("Instance", ""), instance("Revisions", ""), instance("Revision", ""), instance("Health", ""),
		instance("PreviewUpgrade", ""), instance("PreviewRollback", ""), instance("PreviewConfigure", ""), instance("PreviewAct", ""),
		instance("PreviewTest", ""), instance("PreviewRetry", ""), instance("PreviewUndo", ""), {Name: "PreviewAdopt", Need: nf.CreateInstance, Of: New},
		instance("Upgrade", nf.ChangeInstance), instance("Rollback", nf.ChangeInstance), instance("Terminate", nf.RemoveInstance),
		instance("Configure", nf.ChangeInstance), instance("Test", nf.ChangeInstance), instance("Act", nf.ChangeInstance), {Name: "Adopt", Need: nf.CreateInstance, Of: New},
		instance("Operation", ""), instance("Changes", ""), instance("Follow", ""),
		instance("Retry", nf.ChangeInstance), instance("Undo", nf.ChangeInstance), instance("Cancel", nf.ChangeInstance),
		{Name: "Administer", Need: nf.AdministerStore, Of: Service},
		{Name: "Instantiate", Need: nf.CreateInstance, Of: New},
		{Name: "PreviewInstantiate", Need: nf.ReadInstance, Of: New},
	}
}

// Case is one call by one identity on an object in a project and a region.
type Case struct {
	Who     string
	Call    Call
	Project string
	Region  string
	Want    Outcome
}

// String describes the case in one line.
func (c Case) String() string {
	return fmt.Sprintf("%s by %q in project %s, region %s: must be %s", c.Call.Name, c.Who, c.Project, c.Region, c.Want)
}

// Matrix returns every case.
func Matrix() []Case {
	var out []Case
	for _, who := range People() {
		for _, call := range Calls() {
			for _, project := range []string{ProjectA, ProjectB} {
				for _, region := range []string{East, West} {
					out = append(out, Case{who, call, project, region, want(who, call, project, region)})
				}
			}
		}
	}
	return out
}

func want(who string, call Call, project, region string) Outcome {
	inRegion, inProject, inBoth := nf.Scope{Region: region}, nf.Scope{Project: project}, nf.Scope{Project: project, Region: region}
	scope := map[Subject]nf.Scope{Region: inRegion, Package: inProject, Instance: inBoth, New: inBoth, Service: {}}[call.Of]
	if who == Anonymous {
		return Unauthenticated
	}
	may := true
	if call.Need != "" {
		may = May(who, call.Need, scope)
	}
	sees := call.See == "" || May(who, call.See, scope)
	if call.Of == New {
		sees = May(who, nf.ReadRegion, inRegion) && May(who, nf.ReadPackage, inProject)
	}
	switch {
	case call.Of == New && !may:
		// The object does not exist yet, so there is nothing to hide. The
		// answer does not depend on what the request names.
		return Forbidden
	case !sees:
		return Hidden
	case !may:
		return Forbidden
	}
	return Allowed
}
