package distribution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
)

const (
	attempts   = 3       // of a download
	maxModules = 4 << 20 // bytes of the description of modules
)

// distribute stores the definitions of a service, and reports it. Its error says that
// Kafka or the store has failed; then the notification is received again.
func (r *Runner) distribute(ctx context.Context, to reporter, n sdc.Notification) error {
	all := n.All()
	for _, a := range all {
		is := "NOT_NOTIFIED"
		if wanted(a, all) {
			is = "NOTIFIED"
		}
		if err := to.artifact(ctx, n, a, is, nil); err != nil {
			return err
		}
	}
	var failed error
	for _, resource := range n.Resources {
		if resource.Type != sdc.ResourceVF {
			continue
		}
		results, err := r.deployer.deploy(ctx, n.Service, resource, all)
		if err != nil {
			return err
		}
		for _, res := range results {
			if err := res.report(ctx, to, n); err != nil {
				return err
			}
		}
		if len(results) > 0 { // the first one has the failures of all modules
			failed = errors.Join(failed, results[0].download, results[0].deployed)
		}
	}
	is, err := to.component(ctx, n, failed)
	if err != nil {
		return err
	}
	r.cfg.Logger.InfoContext(ctx, "service distributed", "service", n.Service, "name", n.Name, "distribution", n.Distribution, "status", is, "error", failed)
	return r.conclude(ctx, n, is)
}

// wanted reports whether an artifact matters here. One that was generated from another
// matters only if the other one does.
func wanted(a sdc.Artifact, all []sdc.Artifact) bool {
	ours := func(a sdc.Artifact) bool { return a.IsChart() || a.Type == sdc.TypeModules }
	if a.GeneratedFrom == "" {
		return ours(a)
	}
	i := slices.IndexFunc(all, func(from sdc.Artifact) bool { return from.UUID == a.GeneratedFrom })
	return ours(a) && i >= 0 && ours(all[i])
}

// result is what became of an artifact.
type result struct {
	artifact sdc.Artifact
	changed  bool  // a definition has changed
	download error // it could not be downloaded
	deployed error // it could not be deployed
}

// report sends the status messages of an artifact.
func (res result) report(ctx context.Context, to reporter, n sdc.Notification) error {
	if res.download != nil {
		return to.artifact(ctx, n, res.artifact, "DOWNLOAD_ERROR", res.download)
	}
	is := "ALREADY_DEPLOYED"
	switch {
	case res.deployed != nil:
		is = "DEPLOY_ERROR"
	case res.changed:
		is = "DEPLOY_OK"
	}
	err := to.artifact(ctx, n, res.artifact, "DOWNLOAD_OK", nil)
	if err == nil {
		err = to.artifact(ctx, n, res.artifact, is, res.deployed)
	}
	return err
}

// deployer stores modules as definitions.
type deployer struct {
	catalog     Downloads
	definitions Definitions
	pause       time.Duration // before the second attempt of a download
}

// deploy stores the definitions of a resource, and returns the results of its
// artifacts, that of the description of modules first. It returns an error of the store.
func (d deployer) deploy(ctx context.Context, service string, resource sdc.Resource, all []sdc.Artifact) ([]result, error) {
	i := slices.IndexFunc(resource.Artifacts, func(a sdc.Artifact) bool { return a.Type == sdc.TypeModules && wanted(a, all) })
	if i < 0 {
		return nil, nil
	}
	own := result{artifact: resource.Artifacts[i]}
	var modules []sdc.Module
	modules, own.download, own.deployed = d.modules(ctx, own.artifact)
	var results []result
	for _, m := range modules {
		chart, ok := m.Chart(resource.Artifacts)
		if !ok {
			continue // a module of another technology
		}
		res, err := d.module(ctx, service, m, chart)
		if err != nil {
			return nil, err
		}
		own.changed = own.changed || res.changed
		for _, failed := range []error{res.download, res.deployed} {
			if failed != nil {
				own.deployed = errors.Join(own.deployed, fmt.Errorf("cannot deploy VF module %q: %w", m.Name, failed))
			}
		}
		results = merge(results, res)
	}
	return append([]result{own}, results...), nil
}

// merge adds a result. Modules may share an artifact, which has one result.
func merge(results []result, res result) []result {
	i := slices.IndexFunc(results, func(r result) bool { return r.artifact.URL == res.artifact.URL })
	if i < 0 {
		return append(results, res)
	}
	results[i].changed = results[i].changed || res.changed
	results[i].download = errors.Join(results[i].download, res.download)
	results[i].deployed = errors.Join(results[i].deployed, res.deployed)
	return results
}

// modules downloads and reads a description of modules.
func (d deployer) modules(ctx context.Context, a sdc.Artifact) (out []sdc.Module, download, invalid error) {
	var content []byte
	download = d.download(ctx, a, func(_ context.Context, from io.Reader) (err error) {
		content, err = io.ReadAll(io.LimitReader(from, maxModules+1))
		if err == nil && len(content) > maxModules {
			err = nf.E(nf.TooLarge, "read", "the modules", fmt.Errorf("they are larger than %d bytes", maxModules))
		}
		return err
	})
	if download != nil {
		return nil, download, nil
	}
	out, invalid = sdc.ParseModules(content)
	return out, nil, invalid
}

// module stores the definition of a module.
func (d deployer) module(ctx context.Context, service string, m sdc.Module, chart sdc.Artifact) (result, error) {
	res := result{artifact: chart}
	err := d.download(ctx, chart, func(ctx context.Context, from io.Reader) error {
		content := &noting{from: from}
		var err error
		res.changed, err = d.definitions.PutDefinition(ctx, definitionOf(service, m), content)
		if res.deployed = err; content.err != nil {
			res.deployed = nil
			return content.err
		}
		return nil
	})
	res.download = err
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	if slices.Contains([]nf.Kind{nf.Unreachable, nf.Timeout, nf.Cancelled, nf.TooManyRequests}, nf.KindOf(res.deployed)) {
		return res, res.deployed // the chart is not to blame
	}
	return res, nil
}

func definitionOf(service string, m sdc.Module) Definition {
	return Definition{
		Name: m.Invariant, Version: m.Customization, Description: m.Description, Service: service, Model: m.UUID,
		Labels: map[string]string{"vf_module_model_uuid": m.UUID, "vf_module_model_name": m.Name},
	}
}

// download downloads an artifact, several times if SDC is unreachable.
func (d deployer) download(ctx context.Context, a sdc.Artifact, into func(context.Context, io.Reader) error) (err error) {
	for n := range attempts {
		if n > 0 {
			delay.For(ctx, delay.Doubled(d.pause, longestPause, n-1), nil)
		}
		if err = d.catalog.Download(ctx, a, into); nf.KindOf(err) != nf.Unreachable || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// noting is a reader that remembers its error, to tell it from those of its user.
type noting struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (n *noting) Read(p []byte) (int, error) {
	count, err := n.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err //nolint:wrapcheck // io.EOF is not wrapped
}
