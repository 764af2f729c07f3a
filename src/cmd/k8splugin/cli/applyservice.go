package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/declared"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// service creates or changes a network service. It does not wait. Whether members differ
// is known from a dry run.
func (a *applier) service(ctx context.Context, d declared.Service) error {
	before, err := a.present(ctx, ask(api.NewGetServiceRequest(root, d.ID)))
	if err != nil {
		return err
	}
	body := treeOfDocument(d.ServiceCreate)
	if before == nil {
		return a.serviceBegins(ctx, d, actionCreated, ask(api.NewCreateServiceRequestWithBody(root, nil, jsonMedia, nil)), body)
	}
	patch := difference(only(before, "description", "labels"), only(body, "description", "labels"))
	unchanged := len(patch) == 0 && before["state"] == string(nf.ServiceReady)
	patch["networks"] = body["networks"]
	if body["members"] != nil {
		patch["members"] = body["members"]
	}
	if d.NSD != "" {
		patch["nsd"] = d.NSD
	}
	if body["networks"] == nil {
		patch["networks"] = []any{}
	}
	r := ask(api.NewUpdateServiceRequestWithBody(root, d.ID, nil, mergePatch, nil))
	if unchanged && !a.fills(d) {
		p, err := a.previewService(ctx, r, patch)
		if err != nil {
			return err
		}
		if len(p.Members) == 0 {
			a.done(declared.ServiceKind, d.ID, actionUnchanged)
			return nil
		}
	}
	return a.serviceBegins(ctx, d, actionConfigured, r, patch)
}

// fills reports whether this call has given a package of a member another content.
func (a *applier) fills(d declared.Service) bool {
	return slices.ContainsFunc(d.Members, func(m wire.ServiceMemberAdd) bool { return a.uploaded(m.Package) })
}

// uploaded reports whether this call has given a package another content.
func (a *applier) uploaded(pkg string) bool {
	return slices.ContainsFunc(a.outcomes, func(o outcome) bool {
		return o.Kind == declared.PackageKind && o.Name == pkg && o.Action != actionUnchanged
	})
}

func (a *applier) previewService(ctx context.Context, r request, body map[string]any) (p wire.ServicePreview, err error) {
	r.query = url.Values{"dry_run": {"true"}}
	got, err := a.client.send(ctx, r, body)
	if err == nil {
		err = got.decode(&p)
	}
	return p, err
}

// serviceBegins begins a change of a network service, or shows it for a dry run. A dry run
// cannot check members whose package or region this call would create.
func (a *applier) serviceBegins(ctx context.Context, d declared.Service, action string, r request, body map[string]any) error {
	options, err := a.flags.execution.options()
	if err != nil {
		return err
	}
	if options.OnFailure != "" {
		body["on_failure"] = options.OnFailure
	}
	if options.Timeout != nil {
		body["timeout"] = options.Timeout
	}
	switch {
	case !a.flags.dry:
		r.respondAsync()
		got, err := a.client.send(ctx, r, body)
		if err != nil {
			return err
		}
		a.done(declared.ServiceKind, d.ID, action).Operation = got.operation()
		return nil
	case a.fills(d):
		a.done(declared.ServiceKind, d.ID, action).Message = "not checked: a package of its members is not uploaded yet"
		return nil
	case slices.ContainsFunc(d.Members, func(m wire.ServiceMemberAdd) bool { return a.registersRegion(m.Region, m.Placement != nil) }):
		a.done(declared.ServiceKind, d.ID, action).Message = "not checked: a region of its members is not registered yet"
		return nil
	}
	p, err := a.previewService(ctx, r, body)
	if err != nil {
		return err
	}
	for _, m := range p.Members {
		a.session.out.warn(m.Warnings...)
	}
	a.done(declared.ServiceKind, d.ID, action).Message = fmt.Sprintf("members that change: %d", len(p.Members))
	return nil
}
