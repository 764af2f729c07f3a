package cli

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// placementAnswers holds the flags for decisions of OOF and for addresses.
type placementAnswers struct {
	oof, network []string // files
	profiles     profileFlag
}

func (f *placementAnswers) define(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.oof, "oof", nil, "YAML or JSON file with oof_parameters: a map or a list of maps; can be repeated")
	flags.Var(&f.profiles, "compute-profile", "compute profile of a workload, as in web=large: of the package, or a flavor of the region; can be repeated")
	flags.StringArrayVar(&f.network, "network", nil, "YAML or JSON file with network_parameters; can be repeated")
}

// read sets the fields of a request.
func (f *placementAnswers) read(in input, e *wire.InstanceEdit) (err error) {
	if e.NetworkParameters, err = in.parameters(f.network, settings{}); err != nil {
		return err
	}
	e.OOFParameters, err = in.answers(f.oof)
	e.OOFParameters = f.profiles.added(e.OOFParameters)
	return err
}

// profileFlag holds compute profiles of workloads.
type profileFlag struct{ all []any }

func (f *profileFlag) String() string { return "" }
func (f *profileFlag) Type() string   { return "workload=name" }

// Set parses "Deployment/web=large".
func (f *profileFlag) Set(text string) error {
	workload, name, both := strings.Cut(text, "=")
	if !both || workload == "" || name == "" {
		return fmt.Errorf("%q is not a workload and the name of its compute profile, as in web=large", text)
	}
	f.all = append(f.all, map[string]any{"workload": workload, "profile": name})
	return nil
}

// added returns oof_parameters with the compute profiles, in place of those that they have.
func (f *profileFlag) added(oof []map[string]any) []map[string]any {
	if len(f.all) == 0 {
		return oof
	}
	var out []map[string]any
	for _, fields := range oof {
		fields = maps.Clone(fields)
		if delete(fields, nf.ComputeProfilesKey); len(fields) > 0 {
			out = append(out, fields)
		}
	}
	return append(out, map[string]any{nf.ComputeProfilesKey: f.all})
}

// keep adds the oof_parameters of an instance to a change of its compute profiles.
func (f *profileFlag) keep(body *wire.InstancePatch, i wire.Instance) {
	if len(f.all) > 0 {
		body.OOFParameters = f.added(i.OOFParameters)
	}
}

// profilesOf returns compute profiles as --compute-profile has them.
func profilesOf(all []wire.ComputeUse) string {
	var out []string
	for _, use := range all {
		name := use.Name
		if name == "" {
			name = string(jsonOf(use.Profile))
		}
		out = append(out, use.Workload+"="+name)
	}
	return strings.Join(out, ", ")
}
