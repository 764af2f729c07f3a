package cli

import (
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
	k := volumeKind()
	return s.noun("volume", "Create and manage volumes of regions",
		volumeCreate(s), volumeList(s), k.show(s), volumeUpdate(s), k.release(s))
}

func volumeKind() sharedKind[wire.Volume] {
	return sharedKind[wire.Volume]{
		noun: "volume", columns: volumeColumns, describe: (*printer).describeVolume,
		all:      catalogue{list: ask(api.NewListVolumesRequest(root, nil)), key: "volumes", fields: []string{"volume_id"}, about: []string{"size", "state", "description"}},
		creation: ask(api.NewCreateVolumeRequestWithBody(root, nil, jsonMedia, nil)),
		change: func(id string) request {
			return ask(api.NewUpdateVolumeRequestWithBody(root, id, nil, mergePatch, nil))
		},
	}
}

// volumeFlags holds the flags of a volume that can change.
type volumeFlags struct{ size, retention string }

func (f *volumeFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.size, "size", "", "size of the volume, as in 10Gi")
	flags.StringVar(&f.retention, "retention", "", "what happens to the data of a deleted volume: retain or delete (default retain)")
	completeFlag(cmd, "retention", fixed("retain", "delete"))
}

func volumeCreate(s *session) *cobra.Command {
	var f volumeFlags
	var body wire.VolumeCreate
	var source string
	cmd := &cobra.Command{
		Use: "create NAME --region REGION --size SIZE --source SOURCE",
		Long: `Create a volume in a cloud region. It outlives the instances that use it, and
their namespaces.

If the region has an equal volume with the name, the command only adds a holder to
it. The volume exists as long as it has a holder: a name, or a VNF instance that
uses it. docs/volumes.md describes the sources.`,
		Example: `  k8splugin volume create data --region edge-1 --size 10Gi --source '{"nfs":{"server":"10.0.0.5","path":"/export"}}'
  k8splugin volume create logs --region edge-1 --size 1Gi --source '{"class":{"name":"fast"}}' --retention delete`,
	}
	f.define(cmd)
	flags := cmd.Flags()
	flags.StringVar(&source, "source", "", "where the data is, as YAML or JSON: nfs, local, host_path, csi, class or adopt, with its fields")
	flags.StringSliceVar(&body.AccessModes, "access-modes", nil, "access modes, separated by commas (default ReadWriteOnce)")
	flags.StringVar(&body.Mode, "mode", "", "mode of the volume: Filesystem or Block (default Filesystem)")
	return volumeKind().create(s, cmd, func(wanted newShared) (any, error) {
		if wanted.region == "" || source == "" {
			return nil, misused(cmd, errors.New("--region and --source are required"))
		}
		fields := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(source), &fields); err != nil {
			return nil, usagef("cannot read --source: it must be a YAML map: %w", err)
		}
		body.Name, body.Region, body.Project, body.Holder = wanted.name, wanted.region, wanted.project, wanted.holder
		body.Size, body.Retention = f.size, nf.Retention(f.retention)
		body.Keep, body.Description, body.Labels = wanted.flags.keep, wanted.flags.description, present(wanted.flags.labels.labels)
		sent := map[string]any{}
		if err := json.Unmarshal(jsonOf(body), &sent); err != nil {
			return nil, err
		}
		sent["source"] = fields // as it was given: the service names its faults
		return sent, nil
	})
}

func volumeUpdate(s *session) *cobra.Command {
	var f volumeFlags
	cmd := &cobra.Command{
		Long: `Change a volume. Its size can only grow; a volume of a storage class grows while an
instance uses it. --label key- removes a label.`,
	}
	f.define(cmd)
	return volumeKind().update(s, cmd, func(patch map[string]any) error {
		addChanged(patch, cmd, map[string]any{"size": f.size, "retention": f.retention})
		return nil
	})
}

func volumeList(s *session) *cobra.Command {
	cmd, _ := volumeKind().list(s)
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
