package onapimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// adoptions is the maximum number of concurrent adoptions.
const adoptions = 8

// candidate is an instance to adopt.
type candidate struct {
	takenOver takenOver

	item  migration.Item
	there bool  // imported by an earlier run
	err   error // why it cannot be adopted
}

// instances adopts the instances, several at a time.
func (im *Importer) instances(ctx context.Context, all []onapstore.Instance) error {
	candidates := make([]candidate, len(all))
	// Sequentially, because instances of one profile share a package.
	for i, in := range all {
		c := candidate{takenOver: takenOver{Instance: in}, item: migration.Item{Kind: "instance", Name: in.ID}}
		if c.there, c.err = im.known(ctx, in.ID); c.err == nil && !c.there {
			c.err = im.complete(ctx, &c)
		}
		candidates[i] = c
	}
	results := make([][]migration.Item, len(all))
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
	im.report.Sort(items)
	im.report.Add(items...)
	return err
}

// instance adopts one instance and imports its configurations.
func (im *Importer) instance(ctx context.Context, c *candidate) ([]migration.Item, error) {
	if c.err == nil && !c.there {
		c.err = im.takeOver(ctx, c)
	}
	it, err := outcome(c.item, !c.there, c.err)
	if err != nil {
		return nil, fmt.Errorf("cannot adopt instance %s: %w", c.takenOver.ID, err)
	}
	items := []migration.Item{it}
	for _, configuration := range c.takenOver.Configurations {
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

// known reports whether an instance has been imported before. It waits for an
// adoption that has started.
func (im *Importer) known(ctx context.Context, id string) (bool, error) {
	if v := nf.CheckID("", id); len(v) > 0 {
		return false, nil // adoption will reject it
	}
	alias, err := im.records.Alias(ctx, id)
	if err != nil {
		return false, err
	}
	in, err := im.cfg.Engine.Instance(ctx, alias.Engine)
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	if !onap.Manages(in) {
		return false, differsError("an instance with this id exists, but it was not created through ONAP's API")
	}
	if in.Revision == 0 && in.Operation != "" && !im.cfg.Dry {
		return true, im.await(ctx, in.Operation)
	}
	return true, nil
}

// takeOver adopts an instance.
func (im *Importer) takeOver(ctx context.Context, o *candidate) error {
	c, err := im.cluster(ctx, o.takenOver.Request.Region)
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
	if im.cfg.Dry {
		return nil
	}
	return im.await(ctx, op.ID)
}

// complete composes the packages of an instance and its configurations. It
// returns a lacksError if something for them is missing.
func (im *Importer) complete(ctx context.Context, o *candidate) error {
	key := bundle.Key{Name: o.takenOver.Request.Definition, Version: o.takenOver.Request.Version, Profile: o.takenOver.Request.Profile}
	switch {
	case o.takenOver.Status == "PRE-INSTALL":
		return lacksError("its installation did not complete")
	case im.bad["definition "+definitionName(key.Name, key.Version)]:
		return lacksError("its definition was not imported or differs from ONAP's")
	case im.bad["profile "+profileName(key)]:
		return lacksError("its profile was not imported or differs from ONAP's")
	}
	if o.takenOver.Status != "" && o.takenOver.Status != "DONE" {
		o.warn("ONAP had not finished an operation on it: its status is %s", o.takenOver.Status)
	}
	var err error
	if o.takenOver.composed, err = im.cfg.Bundles.Compose(ctx, key); err != nil {
		if nf.KindOf(err) == nf.NotFound || nf.KindOf(err) == nf.Conflict {
			return lacksError(err.Error())
		}
		return err
	}
	for _, c := range o.takenOver.Configurations {
		full := configured{Configuration: c, packages: map[string]string{}}
		for _, v := range c.Versions {
			if _, done := full.packages[v.Template]; done {
				continue
			}
			pkg, err := im.cfg.Bundles.ComposeTemplate(ctx, key, v.Template)
			if err != nil && infrastructure(err) {
				return err
			}
			full.packages[v.Template] = pkg // empty on error
		}
		o.takenOver.configs = append(o.takenOver.configs, full)
	}
	return nil
}

// cluster opens a region.
func (im *Importer) cluster(ctx context.Context, id string) (Cluster, error) {
	region, err := im.cfg.Regions.Region(ctx, id)
	if err != nil {
		if nf.KindOf(err) == nf.NotFound {
			return nil, lacksError(fmt.Sprintf("its region %q is not registered", id))
		}
		return nil, err
	}
	return im.cfg.Open(region)
}

// alive checks that an object of an instance exists in its region. A record
// alone is not enough to adopt, and the region may now be another cluster. An
// object that cannot be read does not count.
func (im *Importer) alive(ctx context.Context, c Cluster, o takenOver) error {
	if len(o.Resources) == 0 { // ONAP leaves such a record after a failed upgrade
		return nil
	}
	unread := "" // from the first pass: the record does not say which objects are cluster-scoped
	for i, namespace := range []string{o.namespace(), ""} {
		refs := make([]nf.Ref, len(o.Resources))
		for i, r := range o.Resources {
			refs[i] = nf.Ref{Group: r.Type.Group, Version: r.Type.Version, Kind: r.Type.Kind, Namespace: namespace, Name: r.Name}
		}
		health, err := c.Health(ctx, nf.Subject{Kind: nf.InstanceSubject, ID: o.ID}, refs)
		if err != nil {
			return ofRegion(err)
		}
		for _, h := range health {
			switch {
			case h.Status != nf.Absent && h.Status != nf.Unknown:
				return nil
			case h.Status == nf.Unknown && i == 0 && unread == "":
				unread = fmt.Sprintf("; %s cannot be read: %s", h.Ref, h.Message)
			}
		}
	}
	return lacksError(fmt.Sprintf("none of the objects that ONAP recorded has its label in region %s%s", o.Request.Region, unread))
}

// ofRegion limits the effect of a region's error to the items in the region.
func ofRegion(err error) error {
	if infrastructure(err) && !errors.Is(err, context.Canceled) {
		return nf.E(nf.Failed, "query", "the region", err)
	}
	return err
}

// adopt starts the adoption of an instance, with its configurations as
// amendments. If the request with amendments is rejected, it adopts without
// them and adds a warning.
func (im *Importer) adopt(ctx context.Context, o *candidate) (nf.Operation, error) {
	wanted, err := o.takenOver.adoption(true)
	if err != nil {
		return nf.Operation{}, err
	}
	op, err := im.cfg.Engine.Adopt(ctx, wanted)
	if err == nil || infrastructure(err) || len(wanted.Amendments) == 0 {
		return op, ofRegion(err)
	}
	plain, e := o.takenOver.adoption(false)
	if e != nil {
		return op, e
	}
	if op, e = im.cfg.Engine.Adopt(ctx, plain); e != nil {
		return op, ofRegion(e)
	}
	for i := range o.takenOver.configs {
		o.takenOver.configs[i].packages = nil
	}
	o.warn("its configurations cannot be layered over it: %v", err)
	return op, nil
}

// compare adds warnings for differences between the record, the chart and the
// region.
func (im *Importer) compare(ctx context.Context, c Cluster, o *candidate, op nf.Operation) error {
	encoded, err := im.blobs.ReadAll(ctx, op.Instance.Target.Plan)
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
	for _, r := range o.takenOver.Resources {
		if !rendered[nf.Ref{Group: r.Type.Group, Kind: r.Type.Kind, Name: r.Name}] {
			o.warn("%s %s is in ONAP's record but not in the chart: it stays, unowned", r.Type.Kind, r.Name)
		}
	}
	return o.compareWith(ctx, c, refs)
}

// compareWith adds warnings for objects of the chart that are not in the
// region.
func (c *candidate) compareWith(ctx context.Context, region Cluster, refs []nf.Ref) error {
	// Objects that are adopted later have the same label as before.
	health, err := region.Health(ctx, nf.Subject{Kind: nf.InstanceSubject, ID: c.takenOver.ID}, refs)
	if err != nil {
		return ofRegion(err)
	}
	for _, h := range health {
		if h.Status == nf.Absent {
			c.warn("%s is in the chart, but it is not in the region or not owned by the instance there", h.Ref)
		}
		if h.Status == nf.Unknown {
			c.warn("%s cannot be read in the region: %s", h.Ref, h.Message)
		}
	}
	return nil
}

// await waits for an operation, and returns its error.
func (im *Importer) await(ctx context.Context, id string) error {
	op, err := im.cfg.Engine.Wait(ctx, id)
	switch {
	case err != nil:
		return err
	case op.State == nf.Succeeded:
		return nil
	case op.Failure != nil:
		return nf.E(nf.Failed, "adopt", "the instance", nf.Errorf("%s", op.Failure.Said()))
	}
	return nf.E(nf.Failed, "adopt", "the instance", fmt.Errorf("the operation is %s", op.State))
}

// configuration imports the history of a configuration after its instance was
// imported.
func (im *Importer) configuration(ctx context.Context, o takenOver, c onapstore.Configuration, instance migration.Result) (migration.Item, error) {
	it := migration.Item{Kind: "configuration", Name: o.ID + " " + c.Name}
	if instance != migration.Imported && instance != migration.Present {
		it.Result, it.Reason = migration.Skipped, "its instance was not imported"
		return it, nil
	}
	present, err := im.cfg.Engine.Instance(ctx, o.ID)
	if err != nil && nf.KindOf(err) != nf.NotFound { // the instance may have been moved, and then has another id
		return it, err
	}
	if !onap.HasConfig(present, importedGeneration, c.Name) {
		it.Result = migration.Present // imported before; the instance was upgraded or deleted since
		return it, nil
	}
	added, err := im.history(ctx, o, c)
	if err != nil {
		return it, err
	}
	amended := slices.ContainsFunc(present.Amendments, func(am nf.Amendment) bool { return am.Name == c.Name })
	if added && c.InForce && !amended {
		it.Warnings = append(it.Warnings, "its values are imported, but its objects are not: its next change adopts them")
	}
	return outcome(it, added, nil)
}

// history imports missing versions and tags, and reports whether there were
// any.
func (im *Importer) history(ctx context.Context, o takenOver, c onapstore.Configuration) (added bool, err error) {
	key := bundle.ConfigKey{Instance: o.ID, Generation: importedGeneration, Config: c.Name}
	have, err := im.records.Versions(ctx, key)
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
		if v.Number <= newest { // imported before, and possibly deleted since because of its age
			continue
		}
		added = true
		if err := im.records.Record(ctx, bundle.Version{
			ConfigKey: key, Number: v.Number, Deleted: v.Deleted, Template: v.Template, Package: packages[v.Template],
			Description: v.Description, Values: v.Values, Sensitive: secretsIn(v.Values),
		}); err != nil {
			return added, err
		}
	}
	for _, t := range c.Tags {
		_, err := im.records.Tag(ctx, key, t.Name)
		if nf.KindOf(err) == nf.NotFound {
			added = true
			err = im.records.SetTag(ctx, bundle.Tag{ConfigKey: key, Name: t.Name, Number: t.Number})
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// secretsIn returns the keys of a version's values that look like secrets. The
// version's chart is not rendered again, so there is no other source.
func secretsIn(values json.RawMessage) []string {
	var parameters map[string]any
	_ = json.Unmarshal(values, &parameters) // parsed before
	return render.SecretNames{}.In(nf.Inputs{Parameters: parameters})
}
