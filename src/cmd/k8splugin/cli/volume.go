package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func volumeCommand(s *session) *cobra.Command {
	return s.noun("volume", "Create and manage volumes of regions",
		volumeCreate(s), volumeList(s), volumeShow(s), volumeUpdate(s), volumeDelete(s))
}

func volumes() catalogue {
	return catalogue{list: ask(api.NewListVolumesRequest(root, nil)), key: "volumes", fields: []string{"volume_id"}, about: []string{"size", "state", "description"}}
}

// volumeFlags holds the flags of a volume that can change.
type volumeFlags struct {
	size, retention string
	keep            bool
	description     string
	labels          labelsFlag
}

func (f *volumeFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.size, "size", "", "size of the volume, as in 10Gi")
	flags.StringVar(&f.retention, "retention", "", "what happens to the data of a deleted volume: retain or delete (default retain)")
	flags.BoolVar(&f.keep, "keep", false, "keep the volume when nothing holds it")
	flags.StringVar(&f.description, "description", "", "description of the volume")
	flags.Var(&f.labels, "label", "label; can be repeated")
	completeFlag(cmd, "retention", fixed("retain", "delete"))
}

func volumeCreate(s *session) *cobra.Command {
	var f volumeFlags
	var body wire.VolumeCreate
	var source string
	cmd := &cobra.Command{
		Use:   "create NAME --region REGION --size SIZE --source SOURCE",
		Short: "Create a volume, or hold one that is equal",
		Long: `Create a volume in a cloud region. It outlives the instances that use it, and
their namespaces.

If the region has an equal volume with the name, the command only adds a holder to
it. The volume exists as long as it has a holder: a name, or a VNF instance that
uses it. docs/volumes.md describes the sources.`,
		Example: `  k8splugin volume create data --region edge-1 --size 10Gi --source '{"nfs":{"server":"10.0.0.5","path":"/export"}}'
  k8splugin volume create logs --region edge-1 --size 1Gi --source '{"class":{"name":"fast"}}' --retention delete`,
		Args: oneName,
	}
	f.define(cmd)
	flags := cmd.Flags()
	flags.StringVar(&source, "source", "", "where the data is, as YAML or JSON: nfs, local, host_path, csi, class or adopt, with its fields")
	flags.StringSliceVar(&body.AccessModes, "access-modes", nil, "access modes, separated by commas (default ReadWriteOnce)")
	flags.StringVar(&body.Mode, "mode", "", "mode of the volume: Filesystem or Block (default Filesystem)")
	flags.StringVar(&body.Region, "region", "", "cloud region of the volume")
	flags.StringVar(&body.Holder, "holder", "", "name that holds the volume (default your own)")
	flags.StringVar(&body.Project, "project", "", "project of the volume")
	completeFlag(cmd, "region", s.ids(regions(), false))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if body.Region == "" || source == "" {
			return misused(cmd, errors.New("--region and --source are required"))
		}
		fields := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(source), &fields); err != nil {
			return usagef("cannot read --source: it must be a YAML map: %w", err)
		}
		body.Name, body.Size, body.Retention, body.Keep, body.Description, body.Labels = args[0], f.size, nf.Retention(f.retention), f.keep, f.description, present(f.labels.labels)
		sent := map[string]any{}
		if err := json.Unmarshal(jsonOf(body), &sent); err != nil {
			return err
		}
		sent["source"] = fields // as it was given: the service names its faults
		a, err := c.send(ctx, ask(api.NewCreateVolumeRequestWithBody(root, nil, jsonMedia, nil)), sent)
		if err != nil {
			return err
		}
		return printOne(s.out, a, volumeColumns)
	})
	return cmd
}

func volumeUpdate(s *session) *cobra.Command {
	f := volumeFlags{labels: labelsFlag{removable: true}}
	cmd := &cobra.Command{
		Use:   "update VOLUME",
		Short: "Change a volume",
		Long: `Change a volume. Its size can only grow; a volume of a storage class grows while an
instance uses it. --label key- removes a label.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(volumes(), false),
	}
	f.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		for name, value := range map[string]any{"size": f.size, "retention": f.retention, "keep": f.keep, "description": f.description} {
			if cmd.Flags().Changed(name) {
				body[name] = value
			}
		}
		if len(f.labels.labels) > 0 {
			body["labels"] = f.labels.labels
		}
		if len(body) == 0 {
			return misused(cmd, errors.New("nothing to change"))
		}
		a, err := c.send(ctx, ask(api.NewUpdateVolumeRequestWithBody(root, args[0], nil, mergePatch, nil)), body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, volumeColumns)
	})
	return cmd
}

func volumeDelete(s *session) *cobra.Command {
	return releaseCommand(s, "volume", volumes(), func(id string) request { return ask(api.NewReleaseVolumeRequest(root, id, nil)) }, volumeColumns)
}

func volumeList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List volumes", volumes(), volumeColumns)
	q.add(cmd, "region", "cloud_region_id", "filter by cloud region")
	q.add(cmd, "state", "state", "filter by state: creating, active, changing, deleting or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "region", s.ids(regions(), false))
	completeFlag(cmd, "state", fixed("creating", "active", "changing", "deleting", "failed"))
	return cmd
}

func volumeColumns(now clock) []column[wire.Volume] {
	return []column[wire.Volume]{
		{"VOLUME", false, func(v wire.Volume) string { return v.ID }},
		{"STATE", false, func(v wire.Volume) string { return string(v.State) }},
		{"SIZE", false, func(v wire.Volume) string { return v.Size }},
		{"USERS", false, func(v wire.Volume) string { return countOf(v.UseCount) }},
		{"PHASE", true, func(v wire.Volume) string { return v.Phase }},
		{"RETENTION", true, func(v wire.Volume) string { return string(v.Retention) }},
		{"KEEP", true, func(v wire.Volume) string { return strconv.FormatBool(v.Keep) }},
		{"AGE", false, func(v wire.Volume) string { return now.age(v.Created) }},
		{"PROJECT", true, func(v wire.Volume) string { return v.Project }},
		{"DESCRIPTION", true, func(v wire.Volume) string { return v.Description }},
	}
}

func volumeShow(s *session) *cobra.Command {
	return s.showCommand("show VOLUME", "Show a volume and its users", volumes(), s.out.describeVolume)
}

func (pr *printer) describeVolume(w io.Writer, a answer) error {
	var v wire.Volume
	if err := a.decode(&v); err != nil {
		return err
	}
	claim := ""
	if v.Claim != nil {
		claim = v.Claim.Namespace + "/" + v.Claim.Name
	}
	if err := printFields(w, []field{
		{"Id", v.ID}, {"Description", v.Description}, {"Project", v.Project}, {"Region", v.Region}, {"State", string(v.State)}, {"Message", v.Message},
		{"Source", string(jsonOf(v.Source))}, {"Size", v.Size}, {"Access modes", strings.Join(v.AccessModes, ", ")}, {"Mode", v.Mode},
		{"Retention", string(v.Retention)}, {"Keep", strconv.FormatBool(v.Keep)}, {"PersistentVolume", v.PV}, {"Phase", v.Phase}, {"Actual size", v.ActualSize},
		{"Claim", claim}, {"Node", v.Node}, {"Operation", v.Operation}, {"Created", pr.clock.stamp(v.Created)}, {"Updated", pr.clock.stamp(v.Updated)},
		{"Users", countOf(v.UseCount)},
	}); err != nil {
		return err
	}
	return pr.users(w, v.Users)
}

// volumeFlag is --volume: each use binds a claim to a volume.
type volumeFlag struct{ all []wire.VolumeUse }

func (f *volumeFlag) String() string { return "" }
func (f *volumeFlag) Type() string   { return "name[,claim=name]" }

// Set parses "data,claim=db-data".
func (f *volumeFlag) Set(text string) error {
	name, rest, more := strings.Cut(text, ",")
	claim, named := strings.CutPrefix(rest, "claim=")
	if name == "" || strings.Contains(name, "=") || more && (!named || claim == "") {
		return fmt.Errorf("%q is not the name of a volume, with or without a claim, as in data,claim=db-data", text)
	}
	f.all = append(f.all, wire.VolumeUse{Volume: name, Claim: claim})
	return nil
}

// volumeUsesOf returns the uses of volumes as --volume has them.
func volumeUsesOf(all []wire.VolumeUse) string {
	out := make([]string, len(all))
	for i, u := range all {
		out[i] = u.Volume + " claim=" + u.Claim
	}
	return strings.Join(out, "; ")
}
