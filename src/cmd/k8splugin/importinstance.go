package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// adoptions is how many instances are taken over at once.
const adoptions = 8

// candidate is an instance that is to be taken over.
type candidate struct {
	takenOver

	item  importItem
	there bool  // it was brought over before
	err   error // why it cannot be taken over
}

// instances takes over the instances, several at once.
func (im *importer) instances(ctx context.Context, all []onapstore.Instance) error {
	candidates := make([]candidate, len(all))
	// One after another: those of one profile share a package.
	for i, in := range all {
		c := candidate{takenOver: takenOver{Instance: in}, item: importItem{Kind: "instance", Name: in.ID}}
		if c.there, c.err = im.known(ctx, in.ID); c.err == nil && !c.there {
			c.err = im.complete(ctx, &c)
		}
		candidates[i] = c
	}
	results := make([][]importItem, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(adoptions)
	for i := range candidates {
		group.Go(func() (err error) {
			results[i], err = im.instance(ctx, &candidates[i])
			return err
		})
	}
	err := group.Wait()
	items := slices.Concat(results...)
	sortItems(items)
	im.report.add(items...)
	return err
}

// instance takes over one instance and its configurations.
func (im *importer) instance(ctx context.Context, c *candidate) ([]importItem, error) {
	if c.err == nil && !c.there {
		c.err = im.takeOver(ctx, c)
	}
	it, err := outcome(c.item, !c.there, c.err)
	if err != nil {
		return nil, fmt.Errorf("cannot take over instance %s: %w", c.ID, err)
	}
	items := []importItem{it}
	for _, configuration := range c.Configurations {
		item, err := im.configuration(ctx, c.takenOver, configuration, it.Result)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (c *candidate) warn(format string, args ...any) {
	c.item.Warnings = append(c.item.Warnings, fmt.Sprintf(format, args...))
}

// known reports whether an instance was brought over before. One whose taking
// over was begun is waited for.
func (im *importer) known(ctx context.Context, id string) (bool, error) {
	if v := nf.CheckID("", id); len(v) > 0 {
		return false, nil // and it will be refused
	}
	alias, err := im.ledger.Alias(ctx, id)
	if err != nil {
		return false, err
	}
	in, err := im.engine.Instance(ctx, alias.Engine)
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	if !onap.Knows(in) {
		return false, differsError("there is an instance of this id here that ONAP's API has not made")
	}
	if in.Revision == 0 && in.Operation != "" && !im.dry {
		return true, im.await(ctx, in.Operation)
	}
	return true, nil
}

// takeOver makes an instance ours.
func (im *importer) takeOver(ctx context.Context, o *candidate) error {
	c, err := im.cluster(ctx, o.Request.Region)
	if err != nil {
		return err
	}
	if err := im.alive(ctx, c, o.takenOver); err != nil {
		return err
	}
	op, err := im.adopt(ctx, o)
	if err != nil {
		return err
	}
	if err := im.compare(ctx, c, o, op); err != nil {
		return err
	}
	if im.dry {
		return nil
	}
	return im.await(ctx, op.ID)
}

// complete finds what an instance is made of, or says what is missing.
func (im *importer) complete(ctx context.Context, o *candidate) error {
	key := bundle.Key{Name: o.Request.Definition, Version: o.Request.Version, Profile: o.Request.Profile}
	switch {
	case o.Status == "PRE-INSTALL":
		return lacksError("it never came up")
	case im.bad["definition "+definitionName(key.Name, key.Version)]:
		return lacksError("its definition is not here as ONAP has it")
	case im.bad["profile "+profileName(key)]:
		return lacksError("its profile is not here as ONAP has it")
	}
	if o.Status != "" && o.Status != "DONE" {
		o.warn("ONAP was at something with it: its status is %s", o.Status)
	}
	var err error
	if o.composed, err = im.bundles.Compose(ctx, key); err != nil {
		if nf.KindOf(err) == nf.NotFound || nf.KindOf(err) == nf.Conflict {
			return lacksError(err.Error())
		}
		return err
	}
	for _, c := range o.Configurations {
		full := configured{Configuration: c, packages: map[string]string{}}
		for _, v := range c.Versions {
			if _, done := full.packages[v.Template]; done {
				continue
			}
			pkg, err := im.bundles.ComposeTemplate(ctx, key, v.Template)
			if err != nil && infrastructure(err) {
				return err
			}
			full.packages[v.Template] = pkg // none when there is an error: see configuration
		}
		o.configs = append(o.configs, full)
	}
	return nil
}

// cluster opens a region.
func (im *importer) cluster(ctx context.Context, id string) (*cluster.Cluster, error) {
	region, err := im.catalog.Region(ctx, id)
	if err != nil {
		if nf.KindOf(err) == nf.NotFound {
			return nil, lacksError(fmt.Sprintf("its region %q is not here", id))
		}
		return nil, err
	}
	return im.pool.Open(id, region.Kubeconfig)
}

// alive makes sure that something of an instance runs in its region: a record
// alone is nothing to take over, and the region may be another cluster.
func (im *importer) alive(ctx context.Context, c *cluster.Cluster, o takenOver) error {
	if len(o.Resources) == 0 { // an upgrade that fails leaves ONAP's record so
		return nil
	}
	for _, namespace := range []string{o.namespace(), ""} {
		refs := make([]nf.Ref, len(o.Resources))
		for i, r := range o.Resources {
			refs[i] = nf.Ref{Group: r.Type.Group, Version: r.Type.Version, Kind: r.Type.Kind, Namespace: namespace, Name: r.Name}
		}
		live, err := c.Read(ctx, o.ID, refs)
		if err != nil {
			return ofRegion(err)
		}
		if slices.ContainsFunc(live, func(object map[string]any) bool { return object != nil }) {
			return nil
		}
	}
	return lacksError(fmt.Sprintf("none of the objects that ONAP has recorded bears its label in region %s", o.Request.Region))
}

// ofRegion makes what went wrong in a region the failure of what is in it, and
// of nothing else.
func ofRegion(err error) error {
	if infrastructure(err) && !errors.Is(err, context.Canceled) {
		return nf.E(nf.Failed, "ask", "the region", err)
	}
	return err
}

// adopt asks for an instance to become ours: with what its configurations have
// laid over it, or without, when that does not go together.
func (im *importer) adopt(ctx context.Context, o *candidate) (nf.Operation, error) {
	wanted, err := o.adoption(true)
	if err != nil {
		return nf.Operation{}, err
	}
	op, err := im.engine.Adopt(ctx, wanted)
	if err == nil || infrastructure(err) || len(wanted.Amendments) == 0 {
		return op, ofRegion(err)
	}
	plain, e := o.adoption(false)
	if e != nil {
		return op, e
	}
	if op, e = im.engine.Adopt(ctx, plain); e != nil {
		return op, ofRegion(e)
	}
	for i := range o.configs {
		o.configs[i].packages = nil
	}
	o.warn("its configurations cannot be laid over it: %v", err)
	return op, nil
}

// compare tells where the record, the chart and the region disagree.
func (im *importer) compare(ctx context.Context, c *cluster.Cluster, o *candidate, op nf.Operation) error {
	encoded, err := im.blobs.ReadAll(ctx, op.Target.Plan)
	if err != nil {
		return err
	}
	plan, err := render.Decode(encoded)
	if err != nil {
		return err
	}
	var refs []nf.Ref
	rendered := map[nf.Ref]bool{}
	for _, stage := range plan.Stages {
		for _, object := range stage.Objects {
			kind := object.Object.GroupVersionKind()
			rendered[nf.Ref{Group: kind.Group, Kind: kind.Kind, Name: object.Object.GetName()}] = true
			if !object.Shared {
				refs = append(refs, nf.Ref{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.Object.GetNamespace(), Name: object.Object.GetName()})
			}
		}
	}
	for _, r := range o.Resources {
		if !rendered[nf.Ref{Group: r.Type.Group, Kind: r.Type.Kind, Name: r.Name}] {
			o.warn("%s %s is in ONAP's record and not in the chart: it stays, and is nobody's", r.Type.Kind, r.Name)
		}
	}
	// What is taken over later bears the same label as before.
	live, err := c.Read(ctx, o.ID, refs)
	if err != nil {
		return ofRegion(err)
	}
	for i, object := range live {
		if object == nil {
			o.warn("%s is in the chart and not in the region, or not the instance's there", refs[i])
		}
	}
	return nil
}

// await waits for an operation, and fails when it does.
func (im *importer) await(ctx context.Context, id string) error {
	op, err := last(ctx, im.engine, id)
	switch {
	case err != nil:
		return err
	case op.State == nf.Succeeded:
		return nil
	case op.Failure != nil:
		return nf.E(nf.Failed, "take over", "the instance", errors.New(op.Failure.Message))
	}
	return nf.E(nf.Failed, "take over", "the instance", fmt.Errorf("the operation is %s", op.State))
}

// configuration brings the history of a configuration over, once its instance is
// there.
func (im *importer) configuration(ctx context.Context, o takenOver, c onapstore.Configuration, instance importResult) (importItem, error) {
	it := importItem{Kind: "configuration", Name: o.ID + " " + c.Name}
	if instance != imported && instance != importedThere {
		it.Result, it.Reason = importSkipped, "its instance was not brought over"
		return it, nil
	}
	present, err := im.engine.Instance(ctx, o.ID)
	if err != nil && nf.KindOf(err) != nf.NotFound { // it may have been moved: then it is another one
		return it, err
	}
	if !onap.KnowsConfig(present, importedGeneration, c.Name) {
		it.Result = importedThere // it was, and has been upgraded or deleted since
		return it, nil
	}
	added, err := im.history(ctx, o, c)
	if err != nil {
		return it, err
	}
	amended := slices.ContainsFunc(present.Amendments, func(am nf.Amendment) bool { return am.Name == c.Name })
	if added && c.InForce && !amended {
		it.Warnings = append(it.Warnings, "what it says is known, and its objects are not: the next change of it takes them over")
	}
	return outcome(it, added, nil)
}

// history records the versions and tags that are not recorded, and reports
// whether there were any.
func (im *importer) history(ctx context.Context, o takenOver, c onapstore.Configuration) (added bool, err error) {
	key := bundle.ConfigKey{Instance: o.ID, Generation: importedGeneration, Config: c.Name}
	have, err := im.ledger.Versions(ctx, key)
	if err != nil {
		return false, err
	}
	newest := 0
	if n := len(have); n > 0 {
		newest = have[n-1].Number
	}
	packages := map[string]string{}
	for _, full := range o.configs {
		if full.Name == c.Name && full.packages != nil {
			packages = full.packages
		}
	}
	for _, v := range c.Versions {
		if v.Number <= newest { // or it was, and is too old by now
			continue
		}
		added = true
		if err := im.ledger.Record(ctx, bundle.Version{
			ConfigKey: key, Number: v.Number, Deleted: v.Deleted, Template: v.Template, Package: packages[v.Template],
			Description: v.Description, Values: v.Values, Sensitive: secretsIn(v.Values),
		}); err != nil {
			return added, err
		}
	}
	for _, t := range c.Tags {
		_, err := im.ledger.Tag(ctx, key, t.Name)
		if nf.KindOf(err) == nf.NotFound {
			added = true
			err = im.ledger.SetTag(ctx, bundle.Tag{ConfigKey: key, Name: t.Name, Number: t.Number})
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// secretsIn returns the names in the values of a version that sound secret: its
// chart is not rendered again, so nothing else says which are.
func secretsIn(values json.RawMessage) []string {
	var parameters map[string]any
	_ = json.Unmarshal(values, &parameters) // they were read before
	return render.SecretNames{}.In(nf.Inputs{Parameters: parameters})
}
