package access_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// world is an engine and a catalog with an instance of each project in each region.
// It records the calls that change them.
type world struct {
	done    []string                                      // the calls that change something
	fail    error                                         // of the changes; nil: none
	client  string                                        // of the key of the last change
	edit    nf.Spec                                       // result of the edit of the last upgrade
	secrets bool                                          // whether the last preview could find Secrets
	attach  func(context.Context, nf.Network, bool) error // of the last request or preview
	use     func(context.Context, nf.Volume) error        // of the last request
	enroll  func(context.Context, string) error           // of the last request: may it register a region
	keyed   map[string]nf.Operation
	lenient bool // it checks the key before the options, and fails

	placement *nf.Placement       // of the last new instance
	regionsIn func(nf.Scope) bool // of the last list of regions

	mentioned string        // the instance that every text mentions
	more      []nf.Instance // instances without operations
	reads     []string      // the reads of instances
	failure   *nf.Failure   // of the operation of a site; nil: it mentions the instance
}

func vnf(project, region string) string { return "vnf-" + project + "-" + region }
func op(project, region string) string  { return "op-" + project + "-" + region }
func pkg(project string) string         { return "pkg-" + project }

func (w *world) all() []nf.Instance {
	var out []nf.Instance
	for _, project := range []string{accesstest.ProjectA, accesstest.ProjectB} {
		for _, region := range []string{accesstest.East, accesstest.West} {
			out = append(out, nf.Instance{ID: vnf(project, region), Project: project, Region: region, Package: pkg(project), State: nf.Broken})
		}
	}
	return out
}

// did records a change, unless the options do not allow one.
func (w *world) did(call string, o nf.Options) (nf.Operation, error) {
	if op, ok := w.keyed[o.Key.Client+"/"+o.Key.Key]; ok && o.Key.Key != "" {
		return op, nil
	}
	if err := o.Validate(); err != nil && !w.lenient {
		return nf.Operation{}, err
	}
	if w.fail != nil {
		return nf.Operation{}, w.fail
	}
	w.done, w.client, w.attach, w.use, w.enroll = append(w.done, call), o.Key.Client, o.MayAttach, o.MayUse, o.MayRegister
	return nf.Operation{ID: "new-op", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "new"}, Steps: []nf.Step{w.step()}}, nil
}

func (w *world) Instantiate(_ context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	w.placement = req.Placement
	op, err := w.did("instantiate", req.Options)
	if req.Placement != nil {
		op.Instance.Placed = &nf.Placed{Region: "east", Omitted: 3, Candidates: []nf.Candidate{{Region: "east", Reason: nf.PlacementChosen}, {Region: "west", Reason: nf.PlacementRoom}}}
	}
	return op, err
}

func (w *world) Upgrade(_ context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	if err := req.Options.Validate(); err == nil {
		spec := nf.Spec{Package: "pkg-" + strings.Split(id, "-")[1]}
		if err := req.Edit(&spec); err != nil {
			return nf.Operation{}, err
		}
		w.edit = spec
	}
	return w.did("upgrade "+id, req.Options)
}

func (w *world) Rollback(_ context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return w.did("rollback "+id, req.Options)
}

func (w *world) Configure(_ context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	if req.Options.Validate() == nil {
		if err := req.Edit(&nf.Spec{}); err != nil {
			return nf.Operation{}, err
		}
	}
	return w.did("configure "+id, req.Options)
}

func (w *world) Test(_ context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	return w.did("test "+id, req.Options)
}

func (w *world) Act(_ context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	return w.did("act on "+id, req.Options)
}

func (w *world) Adopt(_ context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	return w.did("adopt in "+req.Project+" "+req.Region, req.Options)
}

func (w *world) Terminate(_ context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return w.did("terminate "+id, req.Options)
}

func (w *world) PreviewInstantiate(_ context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	w.secrets, w.attach, w.use = req.Secrets, req.MayAttach, req.MayUse
	return nf.Preview{Changes: w.changes()}, nil
}

func (w *world) PreviewUpgrade(_ context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	w.secrets, w.attach, w.use = req.Secrets, req.MayAttach, req.MayUse
	return nf.Preview{}, req.Edit(&nf.Spec{Package: "pkg-" + strings.Split(id, "-")[1]})
}

func (w *world) PreviewRollback(context.Context, string, nf.RollbackRequest) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) PreviewTerminate(context.Context, string, nf.TerminateRequest) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) Retry(_ context.Context, id string, o nf.Options) (nf.Operation, error) {
	return w.did("retry "+id, o)
}

func (w *world) Undo(_ context.Context, id string, o nf.Options) (nf.Operation, error) {
	return w.did("undo "+id, o)
}

func (w *world) Cancel(_ context.Context, id string) (nf.Operation, error) {
	return w.did("cancel "+id, nf.Options{})
}

func (w *world) Instance(_ context.Context, id string) (nf.Instance, error) {
	w.reads = append(w.reads, "instance "+id)
	for _, in := range w.instances() {
		if in.ID == id {
			return in, nil
		}
	}
	return nf.Instance{}, nf.E(nf.NotFound, "look for", "something "+id, errors.New("in the words of the store"))
}

func (w *world) InstancesIn(_ context.Context, region string, from nf.Cursor) iter.Seq2[nf.Instance, error] {
	return sequence(slices.DeleteFunc(w.instances(), func(i nf.Instance) bool {
		return region != "" && i.Region != region || from.In != nil && !from.In(nf.Scope{Project: i.Project, Region: i.Region})
	}))
}

func (w *world) OperationsIn(_ context.Context, from nf.Cursor) iter.Seq2[nf.Operation, error] {
	return sequence(slices.DeleteFunc(w.operations(), func(op nf.Operation) bool { return !from.In(nf.Scope{Project: op.Project, Region: op.Region}) }))
}

func (w *world) OperationsFrom(context.Context, string, nf.Cursor) iter.Seq2[nf.Operation, error] {
	return sequence(w.operations())
}

// sequence yields the items.
func sequence[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

func (w *world) instances() []nf.Instance {
	all := w.all()
	for i := range all {
		all[i].Become(nf.Broken, w.text().Message, w.text().Mentions...)
	}
	return append(all, w.more...)
}

// text returns a text that mentions an instance, and contains its id as a word, in
// a longer id, and in words like those of a mention.
func (w *world) text() nf.Text {
	return nf.Textf("not %s: belongs to %s. Not to VNF instance %s. It says %q.", w.mentioned, nf.Mention(w.mentioned), w.mentioned+"-2", "VNF instance "+w.mentioned+"…")
}

func (w *world) step() nf.Step {
	var s nf.Step
	s.Report(w.text().Message, w.text().Mentions...)
	return s
}

func (w *world) conflict() nf.Violations {
	return nf.Violations{nf.Violation{}.Saying(w.text()), nf.Violation{}.Saying(nf.Textf("is used by %s", nf.Mention("vnf-a-east")))}
}

func (w *world) changes() []nf.Change {
	return []nf.Change{{Action: nf.Kept, Message: w.text().Message, Mentions: w.text().Mentions}, {Message: "it is " + w.mentioned}}
}

func (w *world) Revisions(context.Context, string) ([]nf.Revision, error) { return nil, nil }

func (w *world) Revision(context.Context, string, int) (nf.Revision, error) {
	return nf.Revision{}, nil
}

func (w *world) Health(context.Context, string) ([]nf.Health, error) { return nil, nil }
func (w *world) Pods(context.Context, string) ([]nf.Pod, error)      { return nil, nil }

func (w *world) Operation(_ context.Context, id string) (nf.Operation, error) {
	all := w.operations()
	for _, op := range all {
		if op.ID == id {
			return op, nil
		}
	}
	return nf.Operation{}, nf.E(nf.NotFound, "find", "it", nil)
}

func (w *world) operations() []nf.Operation {
	var out []nf.Operation
	for _, in := range w.all() {
		out = append(out, nf.Operation{
			ID: op(in.Project, in.Region), Subject: nf.Subject{Kind: nf.InstanceSubject, ID: in.ID}, Project: in.Project, Region: in.Region, Verb: nf.Upgrade, State: nf.OperationFailed,
			Warnings:    []string{"it is " + w.mentioned},
			Steps:       []nf.Step{w.step(), {Message: "it is " + w.mentioned}},
			Waiting:     &nf.Wait{For: w.text().Message, Mentions: w.text().Mentions},
			Failure:     nf.FailureOf("apply", nf.E(nf.Conflict, "apply", "objects of others", w.conflict())),
			UndoFailure: nf.FailureOf("undo: apply", nf.E(nf.Conflict, "apply", "objects of others", w.conflict())),
		})
	}
	for verb, id := range map[nf.Verb]string{nf.Instantiate: "op-born-a-east", nf.Terminate: "op-end-a-east"} {
		out = append(out, nf.Operation{ID: id, Subject: nf.Subject{Kind: nf.InstanceSubject, ID: vnf("a", "east")}, Project: "a", Region: "east", Verb: verb, State: nf.OperationFailed})
	}
	return out
}

func (w *world) Changes(context.Context, string) ([]nf.Change, error) {
	return w.changes(), nil
}

func (w *world) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		for range 3 {
			if !yield(w.Operation(ctx, id)) {
				return
			}
		}
	}
}

func (w *world) Enlist(ctx context.Context, r nf.Region) (nf.Region, error) {
	return w.Register(ctx, r)
}

func (w *world) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	_, err := w.did("register "+r.ID, nf.Options{Key: r.Request})
	return r, err
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	all := w.regions()
	for _, r := range all {
		if r.ID == id {
			return r, nil
		}
	}
	return nf.Region{}, nf.E(nf.NotFound, "find", "it", nil)
}

// RegionsFrom yields all regions, as a store without an index.
func (w *world) RegionsFrom(_ context.Context, c nf.Cursor) iter.Seq2[nf.Region, error] {
	w.regionsIn = c.In
	return sequence(w.regions())
}

func (w *world) regions() []nf.Region {
	return []nf.Region{
		{ID: accesstest.East, Access: nf.Access{Token: nf.Secret("t")}, Tenants: map[string]nf.Tenant{nf.AnyProject: {Namespaces: []string{"all"}}, "a": {Namespaces: []string{"of-a"}}, "b": {Namespaces: []string{"of-b"}}}},
		{ID: accesstest.West},
	}
}

func (w *world) HoldersIn(_ context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool) iter.Seq2[nf.Holder, error] {
	users := map[nf.Holding][]string{
		{Region: accesstest.East}: {"vnf-a-east", "vnf-b-east", "vnf-unborn"},
		{Region: accesstest.West}: {"vnf-a-west", "vnf-b-west"},
		{Package: "pkg-a"}:        {"vnf-a-east", "vnf-a-west", "vnf-b-west"},
		{Package: "pkg-b"}:        {"vnf-b-east", "vnf-b-west"},
	}
	scopes := map[string]nf.Scope{"vnf-unborn": {Project: accesstest.ProjectB, Region: accesstest.East}}
	for _, in := range w.all() {
		scopes[in.ID] = nf.Scope{Project: in.Project, Region: in.Region}
	}
	return func(yield func(nf.Holder, error) bool) {
		for _, id := range users[of] {
			if (in == nil || in(nf.InstanceSubject, scopes[id])) && !yield(nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Scope: scopes[id]}, nil) {
				return
			}
		}
	}
}

func (w *world) UpdateRegion(ctx context.Context, id string, _ func(*nf.Region) error) (nf.Region, error) {
	if _, err := w.did("update "+id, nf.Options{}); err != nil {
		return nf.Region{}, err
	}
	return w.Region(ctx, id)
}

func (w *world) RemoveRegion(_ context.Context, id string) error {
	_, err := w.did("remove "+id, nf.Options{})
	return err
}

func (w *world) RegionCapabilities(context.Context, string, bool) (nf.RegionCapabilities, error) {
	return nf.RegionCapabilities{}, nil
}

func (w *world) Upload(_ context.Context, as nf.Package, _ io.Reader) (nf.Package, bool, error) {
	_, err := w.did("upload "+as.ID+" into "+as.Project, nf.Options{Key: as.Request})
	return as, true, err
}

func (w *world) CreatePackage(_ context.Context, as nf.Package) (nf.Package, error) {
	_, err := w.did("create "+as.ID+" in "+as.Project, nf.Options{Key: as.Request})
	return as, err
}

func (w *world) Package(_ context.Context, id string) (nf.Package, error) {
	all := w.packages()
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
	}
	return nf.Package{}, nf.E(nf.NotFound, "find", "it", nil)
}

func (w *world) PackagesFrom(context.Context, nf.Cursor) iter.Seq2[nf.Package, error] {
	return sequence(w.packages())
}

func (w *world) packages() []nf.Package {
	return []nf.Package{
		{ID: "pkg-a", Project: "a"},
		{ID: "pkg-b", Project: "b"},
	}
}

func (w *world) Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error) {
	p, err := w.Package(ctx, id)
	return p, io.NopCloser(strings.NewReader("content of " + id)), err
}

func (w *world) UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error) {
	p, err := w.Package(ctx, id)
	if err == nil {
		err = edit(&p)
	}
	if err == nil {
		_, err = w.did("update "+id, nf.Options{})
	}
	return p, err
}

func (w *world) RemovePackage(_ context.Context, id string) error {
	_, err := w.did("remove "+id, nf.Options{})
	return err
}

var _ interface {
	access.Engine
	access.Catalog
	access.Audits
} = (*world)(nil)
