package installer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// Sites builds and removes sites.
type Sites interface {
	Create(ctx context.Context, req nf.SiteRequest) (nf.Operation, error)
	Change(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error)
	Remove(ctx context.Context, id string, req nf.SiteRemoveRequest) (nf.Operation, error)
	Site(ctx context.Context, id string) (nf.Site, error)
}

// Operations are the operations on sites. An empty id of a site stands for all.
type Operations interface {
	Operation(ctx context.Context, site, id string) (nf.Operation, error)
	Cancel(ctx context.Context, site, id string) (nf.Operation, error)
	Stop(ctx context.Context, site, id string) (nf.Operation, error)
	Follow(ctx context.Context, site, id string, after int) iter.Seq2[nf.OperationUpdate, error]
}

// Packages reads VNF packages.
type Packages interface {
	Topology(ctx context.Context, pkg string) (tosca.Topology, error)
	// File returns a file in the archive of a package. It returns nf.NotFound if there is none.
	File(ctx context.Context, pkg, name string) ([]byte, error)
}

// Config configures an Installer. All fields are required.
type Config struct {
	Sites      Sites
	Operations Operations
	Packages   Packages
	Users      func(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] // of a cloud region
}

// Installer carries out occurrences. It is safe for concurrent use.
type Installer struct{ cfg Config }

// New returns an Installer.
func New(cfg Config) (*Installer, error) {
	if cfg.Sites == nil || cfg.Operations == nil || cfg.Packages == nil || cfg.Users == nil {
		return nil, errors.New("cannot create the installer of clusters: Sites, Operations, Packages and Users are required")
	}
	return &Installer{cfg}, nil
}

// The operations of the interface Vnflcm whose scripts install and remove a cluster.
const (
	installs = "instantiate_end"
	removes  = "terminate_end"
)

// Check returns the cloud region that an instantiation makes, and that in which it creates
// machines, or "". It returns nf.Invalid for parameters that describe no cluster, and for a
// script that the package does not have.
func (i *Installer) Check(ctx context.Context, req nf.InstantiateRequest) (region, cloud string, err error) {
	site, err := i.request(ctx, req)
	if err != nil {
		return "", "", err
	}
	if m := site.Site.Machines; m != nil {
		cloud = m.Cloud
	}
	return site.Site.Region, cloud, site.Validate()
}

// Instantiate creates the site of a VNF.
func (i *Installer) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	site, err := i.request(ctx, req)
	if err != nil {
		return nf.Operation{}, err
	}
	site.Key, site.Trace = req.Key, req.Trace
	return i.cfg.Sites.Create(ctx, site)
}

// request returns the request for the site of a VNF.
func (i *Installer) request(ctx context.Context, req nf.InstantiateRequest) (nf.SiteRequest, error) {
	p, err := read(req.Inputs.Parameters)
	if err != nil {
		return nf.SiteRequest{}, err
	}
	flavor, _ := req.Inputs.Parameters[nf.FlavorParameter].(string)
	topology, err := i.cfg.Packages.Topology(ctx, req.Package)
	if err != nil {
		return nf.SiteRequest{}, fmt.Errorf("cannot read the VNF descriptor: %w", err)
	}
	scripts := topology.Flavors[flavor].Scripts
	out, err := p.site(req.ID, req.Project)
	if err != nil {
		return out, err
	}
	if p.Script == "" {
		p.Script = scripts[installs].File
	}
	if p.Remove == "" {
		p.Remove = scripts[removes].File
	}
	if p.Script == "" {
		return out, invalid("script_path", "is missing, and the flavor has no script for "+installs)
	}
	if out.Secrets.Script, err = i.script(ctx, req.Package, "script_path", p.Script); err != nil || p.Remove == "" {
		return out, err
	}
	out.Secrets.RemoveScript, err = i.script(ctx, req.Package, "remove_script_path", p.Remove)
	return out, err
}

// script returns a script of a package.
func (i *Installer) script(ctx context.Context, pkg, field, name string) (nf.Secret, error) {
	content, err := i.cfg.Packages.File(ctx, pkg, name)
	if err != nil && nf.KindOf(err) == nf.NotFound {
		return nil, invalid(field, fmt.Sprintf("%q is not in the VNF package", nf.Clip(name, maxQuote)))
	}
	return content, err
}

const maxQuote = 200

// Terminate removes the site of a VNF. With Cascade, the instances in its cloud region are
// terminated first.
func (i *Installer) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	in, err := i.cfg.Sites.Site(ctx, id)
	if err != nil {
		return nf.Operation{}, err
	}
	remove := nf.SiteRemoveRequest{Key: req.Key, Trace: req.Trace}
	if req.Cascade && in.Registered {
		for user, err := range i.cfg.Users(ctx, nf.Holding{Region: in.Region}) {
			if err != nil {
				return nf.Operation{}, err
			}
			if user.Kind == nf.InstanceSubject {
				remove.Instances = append(remove.Instances, user.ID)
			}
		}
	}
	slices.Sort(remove.Instances)
	return i.cfg.Sites.Remove(ctx, id, remove)
}

// Act runs the script on all hosts again, to heal the cluster. It returns nf.Unsupported for
// another verb.
func (i *Installer) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	if req.Verb != nf.Heal {
		return nf.Operation{}, refused(req.Verb, id)
	}
	return i.repeat(ctx, id, req.Options)
}

// Rollback runs the script again: a heal has nothing else to undo.
func (i *Installer) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return i.repeat(ctx, id, req.Options)
}

// Upgrade returns nf.Unsupported.
func (*Installer) Upgrade(_ context.Context, id string, _ nf.UpgradeRequest) (nf.Operation, error) {
	return nf.Operation{}, refused(nf.Upgrade, id)
}

func refused(verb nf.Verb, id string) error {
	return nf.E(nf.Unsupported, string(verb), "VNF "+id, errors.New("it is a cluster on hosts; change its site, which has the same id, in the native API"))
}

// repeat builds the site again.
func (i *Installer) repeat(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	return i.cfg.Sites.Change(ctx, id, nf.SiteChangeRequest{Key: opts.Key, Trace: opts.Trace})
}

// Retry starts an operation that has failed again.
func (i *Installer) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	op, err := i.cfg.Operations.Operation(ctx, "", operation)
	if err != nil {
		return op, err
	}
	if op.Verb == nf.SiteRemove {
		return i.cfg.Sites.Remove(ctx, op.Subject.ID, nf.SiteRemoveRequest{Instances: op.Site.Instances, Key: opts.Key, Trace: opts.Trace})
	}
	return i.repeat(ctx, op.Subject.ID, opts)
}

// Undo removes the site that an operation has built.
func (i *Installer) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	op, err := i.cfg.Operations.Operation(ctx, "", operation)
	if err != nil {
		return op, err
	}
	return i.cfg.Sites.Remove(ctx, op.Subject.ID, nf.SiteRemoveRequest{Key: opts.Key, Trace: opts.Trace})
}

// Cancel stops an operation.
func (i *Installer) Cancel(ctx context.Context, operation string) (nf.Operation, error) {
	return i.cfg.Operations.Cancel(ctx, "", operation)
}

// Stop stops an operation before its next step.
func (i *Installer) Stop(ctx context.Context, operation string) (nf.Operation, error) {
	return i.cfg.Operations.Stop(ctx, "", operation)
}

// Instance returns the site of a VNF as an instance. It returns nf.NotFound if there is
// none.
func (i *Installer) Instance(ctx context.Context, id string) (nf.Instance, error) {
	in, err := i.cfg.Sites.Site(ctx, id)
	if err != nil {
		return nf.Instance{}, err
	}
	return nf.Instance{ID: in.ID, Region: in.Region, Project: in.Project, Operation: in.Busy, LastOperation: in.Last}, nil
}

// Operation returns an operation, with the key of its request.
func (i *Installer) Operation(ctx context.Context, id string) (nf.Operation, error) {
	op, err := i.cfg.Operations.Operation(ctx, "", id)
	op.Request.Client, _, _ = strings.Cut(op.Request.Client, "\x00") // package site adds the site
	return op, err
}

// Wait waits until an operation ends, and returns it.
func (i *Installer) Wait(ctx context.Context, id string) (nf.Operation, error) {
	var last nf.Operation
	for update, err := range i.cfg.Operations.Follow(ctx, "", id, 0) {
		if err != nil {
			return last, err
		}
		if update.Operation != nil {
			last = *update.Operation
		}
	}
	switch {
	case last.State.Final():
		return last, nil
	case ctx.Err() != nil:
		return last, context.Cause(ctx)
	}
	return last, fmt.Errorf("cannot follow operation %s to its end: the service is shutting down", id)
}

// The workloads that hosts belong to have the names that Tacker's samples give the VDUs.
const (
	masters = "masterNode"
	workers = "workerNode"
)

// Pods returns the hosts of a VNF as its components.
func (i *Installer) Pods(ctx context.Context, id string) ([]nf.Pod, error) {
	in, err := i.cfg.Sites.Site(ctx, id)
	var out []nf.Pod
	for _, h := range in.Hosts {
		of := nf.Ref{Kind: "Host", Name: masters}
		if h.Role == nf.Worker {
			of.Name = workers
		}
		out = append(out, nf.Pod{Health: nf.Health{Ref: nf.Ref{Kind: "Host", Name: h.Name}}, Phase: "Running", Workload: of})
	}
	return out, err
}
