package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/declared"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// applier applies one set of declarations.
type applier struct {
	session  *session
	client   *client
	flags    applyFlags
	set      declared.Set
	archives [][]byte // of the packages
	outcomes []outcome
}

func (a *applier) all(ctx context.Context) error {
	if err := a.prepare(); err != nil {
		return err
	}
	for i := range a.set.Regions {
		if err := a.region(ctx, &a.set.Regions[i]); err != nil {
			return fmt.Errorf("%s: %w", a.set.Regions[i].Origin, err)
		}
	}
	for i, d := range a.set.Packages {
		if err := a.pkg(ctx, d, a.archives[i]); err != nil {
			return fmt.Errorf("%s: %w", d.Origin, err)
		}
	}
	var failed multiError
	known := map[string]bool{}
	for _, d := range a.set.Instances {
		id, err := a.instance(ctx, d)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d.Origin, err))
		}
		known[id] = true
	}
	for _, d := range a.set.Services {
		if err := a.service(ctx, d); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d.Origin, err))
		}
	}
	if a.flags.prune && len(failed) == 0 {
		if err := a.prune(ctx, known); err != nil {
			failed = append(failed, err)
		}
	}
	return append(failed, a.await(ctx)...).orNil()
}

// prepare reads the files that the declarations name.
func (a *applier) prepare() error {
	for i := range a.set.Regions {
		d := &a.set.Regions[i]
		if d.KubeconfigFile == "" {
			continue
		}
		flags := regionFlags{kubeconfig: declared.Beside(d.Origin, d.KubeconfigFile), context: d.KubeContext}
		var err error
		if _, d.Kubeconfig, err = flags.connection(a.session.in); err != nil {
			return fmt.Errorf("%s: kubeconfig_file: %w", d.Origin, err)
		}
	}
	for _, d := range a.set.Packages {
		name := declared.Beside(d.Origin, d.Path)
		archive, err := archiveOf(name)
		if err == nil {
			_, _, err = a.session.lint(archive)
		}
		if found := nf.ViolationsOf(err); len(found) > 0 {
			err = lintError{"package " + name + " is not valid", found}
		}
		if err != nil {
			return fmt.Errorf("%s: path: %w", d.Origin, err)
		}
		a.archives = append(a.archives, archive)
	}
	return nil
}

// done adds an outcome. A dry run has the same outcomes.
func (a *applier) done(kind declared.Kind, name, action string) *outcome {
	a.outcomes = append(a.outcomes, outcome{Kind: kind, Name: name, Action: action})
	return &a.outcomes[len(a.outcomes)-1]
}

// present reads an object as a tree. It returns nil if it does not exist.
func (a *applier) present(ctx context.Context, r request) (map[string]any, error) {
	got, err := a.client.call(ctx, r)
	if ExitCode(err) == exitNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, got.decode(&out)
}

// region registers or updates a cloud region. Its access cannot be read, so it is always
// sent; the server changes nothing if it is the same.
func (a *applier) region(ctx context.Context, d *declared.Region) error {
	before, err := a.present(ctx, ask(api.NewGetCloudRegionRequest(root, d.ID)))
	if err != nil {
		return err
	}
	wanted := treeOfDocument(d.RegionCreate)
	if before == nil {
		if !a.flags.dry {
			_, err = a.client.send(ctx, ask(api.NewCreateCloudRegionRequestWithBody(root, nil, jsonMedia, nil)), wanted)
		}
		if err == nil {
			a.done(declared.RegionKind, d.ID, actionCreated)
		}
		return err
	}
	replaced := []string{"description", "labels", "default_namespace"}
	for _, name := range []string{"cloud_owner", "tenants", "interfaces", "aai_tenant", "cni_plugins"} { // they stay if they are not declared
		if _, ok := wanted[name]; ok {
			replaced = append(replaced, name)
		}
	}
	patch := difference(only(before, replaced...), only(wanted, replaced...))
	action := actionConfigured
	if len(patch) == 0 {
		action = actionUnchanged
	}
	if !a.flags.dry {
		changed, err := a.patchRegion(ctx, d.ID, patch, only(wanted, "access", "kubeconfig", "credentials"), before["updated_at"])
		if err != nil {
			return err
		}
		if changed {
			action = actionConfigured
		}
	}
	a.done(declared.RegionKind, d.ID, action)
	return nil
}

// patchRegion sends a change of a region and its access, and reports whether the region
// was changed since the given time.
func (a *applier) patchRegion(ctx context.Context, id string, patch, access map[string]any, since any) (bool, error) {
	maps.Copy(patch, access)
	got, err := a.client.send(ctx, ask(api.NewUpdateCloudRegionRequestWithBody(root, id, mergePatch, nil)), patch)
	if err != nil {
		return false, err
	}
	var after map[string]any
	err = got.decode(&after)
	return after["updated_at"] != since, err
}

// pkg uploads a package unless the server has the same content.
func (a *applier) pkg(ctx context.Context, d declared.Package, archive []byte) error {
	before, err := a.present(ctx, ask(api.NewGetPackageRequest(root, d.ID)))
	if err != nil {
		return err
	}
	action := actionConfigured
	switch {
	case before == nil:
		action = actionCreated
	case before["digest"] == fmt.Sprintf("sha256:%x", sha256.Sum256(archive)):
		action = actionUnchanged
	}
	if action != actionUnchanged && !a.flags.dry {
		got, err := a.client.upload(ctx, d.ID, d.Project, bytes.NewReader(archive))
		if err != nil {
			return err
		}
		var p wire.Package
		if err := got.decode(&p); err != nil {
			return err
		}
		a.session.out.warn(p.Warnings...)
	}
	a.done(declared.PackageKind, d.ID, action)
	return nil
}

// instance creates or changes an instance, and returns its id. It does not wait.
func (a *applier) instance(ctx context.Context, d declared.Instance) (string, error) {
	options, err := a.flags.execution.options()
	if err != nil {
		return "", err
	}
	id, err := a.find(ctx, d)
	if err == nil && id == "" {
		body := &wire.InstanceCreate{InstanceTarget: d.InstanceTarget, InstanceEdit: d.InstanceEdit, Execution: options, Placement: d.Placement, Adopt: d.Adopt, Strict: a.flags.strict}
		return "", a.begins(ctx, d, actionCreated, ask(api.NewCreateVnfInstanceRequestWithBody(root, nil, jsonMedia, nil)), body)
	}
	if err != nil {
		return "", err
	}
	before, err := a.present(ctx, ask(api.NewGetVnfInstanceRequest(root, id, nil)))
	if err != nil {
		return id, err
	}
	fields := []string{"csar_id", "vnf_instance_description", "parameters", "oof_parameters", "network_parameters", "set", "labels", "namespaces", "networks", "volumes", "drift", "claims", "aai", "workload_clusters"}
	body := &changePatch{Execution: options, strict: a.flags.strict, fields: difference(only(before, fields...), treeOfDocument(complete(d.InstanceEdit)))}
	r := ask(api.NewUpdateVnfInstanceRequestWithBody(root, id, nil, mergePatch, nil))
	if !body.visible(before) && !a.repackaged(d) {
		preview, _, err := a.session.preview(ctx, a.client, r, body)
		if err != nil {
			return id, err
		}
		if !preview.differs() {
			region, _ := before["cloud_region_id"].(string)
			a.done(declared.InstanceKind, d.Name, actionUnchanged).in(d, region)
			return id, nil
		}
	}
	return id, a.begins(ctx, d, actionConfigured, r, body)
}

// complete returns the fields of an instance with the defaults that the server shows.
func complete(edit wire.InstanceEdit) wire.InstanceEdit {
	edit.Volumes = slices.Clone(edit.Volumes)
	for i, use := range edit.Volumes {
		edit.Volumes[i] = wire.VolumeUseOf(use.Domain())
	}
	return edit
}

// find returns the id of a declared instance; empty: it does not exist. One whose region
// the server has chosen can be in any region.
func (a *applier) find(ctx context.Context, d declared.Instance) (string, error) {
	in := scope{region: d.InstanceTarget.Region, namespace: d.Namespace}
	if d.Placement != nil {
		in.project = cmp.Or(d.Project, nf.DefaultProject)
	}
	all, err := a.client.named(ctx, d.Name, in)
	switch {
	case err != nil || len(all) == 0:
		return "", err
	case len(all) > 1:
		return "", usagef("%d instances are named %q; declare cloud_region_id and namespace of one of them:%s", len(all), d.Name, placesOf(all))
	}
	return all[0].ID, nil
}

// repackaged reports whether this call has given the instance's package another content.
func (a *applier) repackaged(d declared.Instance) bool { return a.uploaded(d.InstanceEdit.Package) }

// begins begins a change of an instance, or shows it for a dry run.
func (a *applier) begins(ctx context.Context, d declared.Instance, action string, r request, body operationRequest) error {
	if a.flags.dry {
		return a.shows(ctx, d, action, r, body)
	}
	options := a.flags.change
	options.waiting.noWait = true // all begin before any is waited for
	options.waiting.wait = ""
	if a.flags.change.waiting.wait == wire.WaitApplied {
		body.Options().Wait = wire.WaitApplied
	}
	got, _, err := a.session.begin(ctx, a.client, r, body, options)
	if err != nil {
		return err
	}
	var i wire.Instance
	if err := got.decode(&i); err != nil {
		return err
	}
	a.session.out.warn(i.Warnings...)
	one := a.done(declared.InstanceKind, d.Name, action)
	one.Operation = got.operation()
	one.in(d, i.Region)
	return nil
}

// shows shows a change of an instance. It cannot check a new instance whose package or
// region this call would create.
func (a *applier) shows(ctx context.Context, d declared.Instance, action string, r request, body operationRequest) error {
	lacks := ""
	switch {
	case a.repackaged(d):
		lacks = "its package is not uploaded yet"
	case action == actionCreated && a.registers(d):
		lacks = "its region is not registered yet"
	}
	if lacks != "" {
		a.done(declared.InstanceKind, d.Name, action).Message = "not checked: " + lacks
		return nil
	}
	p, _, err := a.session.preview(ctx, a.client, r, body)
	if err != nil {
		return err
	}
	one := a.done(declared.InstanceKind, d.Name, action)
	one.Message = p.summary()
	if p.Placement != nil {
		one.in(d, p.Placement.Region)
	}
	return nil
}

// registers reports whether this call registers a region that an instance can be in.
func (a *applier) registers(d declared.Instance) bool {
	return a.registersRegion(d.InstanceTarget.Region, d.Placement != nil)
}

// registersRegion reports whether this call registers a region, or any if the server
// chooses it.
func (a *applier) registersRegion(region string, placed bool) bool {
	return slices.ContainsFunc(a.outcomes, func(o outcome) bool {
		return o.Kind == declared.RegionKind && o.Action == actionCreated && (placed || o.Name == region)
	})
}

// prune deletes the instances with the labels of the flags that are not among the known
// ones. Members of network services stay.
func (a *applier) prune(ctx context.Context, known map[string]bool) error {
	p, err := a.client.list(ctx, instances(), url.Values{"label": a.flags.labels})
	if err != nil {
		return err
	}
	all, err := decodeAll[wire.Instance](p)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i wire.Instance) bool {
		return known[i.ID] || i.State == nf.Terminating || i.Labels[nf.ServiceLabel] != "" || a.declares(i)
	})
	if len(all) == 0 {
		return nil
	}
	if !a.flags.dry && !a.flags.change.confirm.yes {
		fmt.Fprintln(a.session.out.stderr, "these instances are not declared, and would be deleted:")
		for _, i := range all {
			fmt.Fprintf(a.session.out.stderr, "  %s (%s) in region %s, namespace %s\n", printable(cmp.Or(i.Name, i.ID)), i.ID, i.Region, i.Namespace)
		}
		if !a.session.prompt.isTerminal {
			return &exitError{exitConflict, errors.New("not confirmed; no instance was deleted; to confirm: --yes")}
		}
		if err := a.session.prompt.question(ctx, "delete them?"); err != nil {
			return err
		}
	}
	for _, i := range all {
		var got answer
		if !a.flags.dry {
			r := ask(api.NewDeleteVnfInstanceRequest(root, i.ID, nil))
			r.respondAsync()
			if got, err = a.client.call(ctx, r); err != nil {
				return err
			}
		}
		a.done(declared.InstanceKind, cmp.Or(i.Name, i.ID), actionDeleted).Operation = got.operation()
	}
	return nil
}

// declares reports whether an instance is declared. An instance that this call has
// created has no id here.
func (a *applier) declares(i wire.Instance) bool {
	return slices.ContainsFunc(a.set.Instances, func(d declared.Instance) bool {
		region := d.InstanceTarget.Region == i.Region || d.Placement != nil && cmp.Or(d.Project, nf.DefaultProject) == i.Project
		return d.Name == i.Name && region && (d.Namespace == "" || d.Namespace == i.Namespace)
	})
}

// await waits for the operations as the flags say.
func (a *applier) await(ctx context.Context) (failed multiError) {
	done, view := waitCondition(applied), (*progress)(nil)
	if a.flags.change.waiting.wait != "" {
		done, view = ended, a.session.out.progress()
	}
	for i := range a.outcomes {
		one := &a.outcomes[i]
		if one.Operation == "" || a.flags.change.waiting.noWait {
			continue
		}
		if _, err := a.session.watcher.follow(ctx, a.client, ask(api.NewFollowOperationRequest(root, one.Operation, nil)), done, view); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", one.Kind, one.Name, err))
			one.Message = "failed"
		}
	}
	return failed
}
