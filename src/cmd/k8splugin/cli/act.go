package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// actFlags holds the flags that all actions on workloads have.
type actFlags struct {
	execution executionFlags
	waiting   waiting
	dry       bool
}

func (f *actFlags) define(cmd *cobra.Command) {
	f.execution.define(cmd)
	f.waiting.define(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show the changes without making them")
}

// act returns the execution of an action on the instance that the first argument names:
// it sends the request, or shows its changes. To returns the request for the id of the
// instance, and enter completes the body.
func (s *session) act(f *actFlags, body operationRequest, to func(id string) request, enter func(args []string) error) func(*cobra.Command, []string) error {
	return s.run(func(ctx context.Context, c *client, args []string) (err error) {
		if err := enter(args); err != nil {
			return err
		}
		if *body.Options(), err = f.execution.options(); err != nil {
			return err
		}
		i, _, err := s.find(ctx, c, args[0])
		if err != nil {
			return err
		}
		if f.dry {
			return s.dryRun(ctx, c, to(i.ID), body)
		}
		return s.change(ctx, c, to(i.ID), body, changeOptions{waiting: f.waiting})
	})
}

func instanceScale(s *session) *cobra.Command {
	var f actFlags
	var body wire.Scale
	var replicas, by int64
	var path string
	cmd := &cobra.Command{
		Use:   "scale ID|NAME WORKLOAD… --replicas N",
		Short: "Scale workloads of an instance",
		Long: `Give workloads of an instance a number of replicas. A workload is the kind and name
of an object, such as Deployment/router. Later changes of the instance keep the
number, until its package has a different one than now. The command fails if an
autoscaler sets the number.` + waitHelp,
		Example: `  k8splugin instance scale fw-1 Deployment/router --replicas 3 --wait
  k8splugin instance scale fw-1 Deployment/router StatefulSet/db --by -1
  k8splugin instance scale fw-1 Elasticsearch/logs --replicas 3 --path /spec/nodeSets/0/count`,
		Args:              nameAndWorkloads(2),
		ValidArgsFunction: s.ids(instances(), false),
	}
	flags := cmd.Flags()
	flags.Int64Var(&replicas, "replicas", 0, "number of replicas")
	flags.Int64Var(&by, "by", 0, "number to add to the present one, such as -1")
	flags.StringVar(&path, "path", "", "JSON pointer to the number in the object, if it has no scale subresource")
	flags.BoolVar(&body.Force, "force", false, "replace a number that another client, such as kubectl, has set")
	f.define(cmd)
	f.execution.defineOnFailure(cmd, "undo")
	to := func(id string) request {
		return ask(api.NewScaleVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
	}
	cmd.RunE = s.act(&f, &body, to, func(args []string) error {
		given := flags.Changed("replicas")
		if given == (by != 0) {
			return misused(cmd, errors.New("give either --replicas or --by"))
		}
		for _, name := range args[1:] {
			workload := wire.Scaling{Workload: name, By: by, Path: path}
			if given {
				workload.Replicas = &replicas
			}
			body.Workloads = append(body.Workloads, workload)
		}
		return nil
	})
	return cmd
}

func instanceRestart(s *session) *cobra.Command {
	var f actFlags
	var body wire.Restart
	cmd := &cobra.Command{
		Use:   "restart ID|NAME [WORKLOAD…]",
		Short: "Restart workloads of an instance",
		Long: `Replace the pods of workloads of an instance, according to the update strategy of
each. A workload is the kind and name of an object, such as Deployment/router. By
default, every Deployment, StatefulSet and DaemonSet is restarted. A VirtualMachine is
restarted only if it is named; that has no undo.` + waitHelp,
		Example: `  k8splugin instance restart fw-1 Deployment/router --wait
  k8splugin instance restart fw-1 VirtualMachine/firewall --wait`,
		Args:              nameAndWorkloads(1),
		ValidArgsFunction: s.ids(instances(), false),
	}
	f.define(cmd)
	f.execution.defineOnFailure(cmd, "undo")
	to := func(id string) request {
		return ask(api.NewRestartVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
	}
	cmd.RunE = s.act(&f, &body, to, func(args []string) error {
		body.Workloads = args[1:]
		return nil
	})
	return cmd
}

// machineVerb is a command for virtual machines of an instance.
type machineVerb struct {
	name, short, long string
	undo              bool // it accepts --on-failure
	request           func(id string) request
}

func machineVerbs() []machineVerb {
	return []machineVerb{
		{"start", "Start virtual machines of an instance", `Start virtual machines of KubeVirt, and wait until they run. Later changes of the
instance keep their new run strategy.`, true, func(id string) request {
			return ask(api.NewStartVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
		}},
		{"stop", "Stop virtual machines of an instance", `Shut virtual machines of KubeVirt down. Later changes of the instance keep them
stopped.`, true, func(id string) request {
			return ask(api.NewStopVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
		}},
		{"migrate", "Migrate virtual machines of an instance", `Move running virtual machines of KubeVirt to other nodes, which KubeVirt chooses. The
command fails if KubeVirt reports that one cannot be migrated while it runs. A
migration has no undo.`, false, func(id string) request {
			return ask(api.NewMigrateVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
		}},
	}
}

// instanceMachines returns the commands for virtual machines.
func instanceMachines(s *session) []*cobra.Command {
	var out []*cobra.Command
	for _, verb := range machineVerbs() {
		var f actFlags
		var body wire.Machines
		cmd := &cobra.Command{
			Use:               verb.name + " ID|NAME MACHINE…",
			Short:             verb.short,
			Long:              verb.long + waitHelp,
			Example:           "  k8splugin instance " + verb.name + " fw-1 VirtualMachine/firewall --wait",
			Args:              nameAndWorkloads(2),
			ValidArgsFunction: s.ids(instances(), false),
		}
		f.define(cmd)
		if verb.undo {
			f.execution.defineOnFailure(cmd, "undo")
		}
		cmd.RunE = s.act(&f, &body, verb.request, func(args []string) error {
			body.Workloads = args[1:]
			return nil
		})
		out = append(out, cmd)
	}
	return out
}

func instanceHeal(s *session) *cobra.Command {
	var f actFlags
	var body wire.Heal
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "heal ID|NAME",
		Short: "Create missing objects again, and replace pods",
		Long: `Create again the objects of an instance that other clients have deleted. Objects that
exist stay as they are, unless --drift is given. Pods given with --pod are evicted one after another, so that
their controllers replace them. If a disruption budget does not allow that in time,
the command fails and names the budget.` + waitHelp,
		Example: `  k8splugin instance heal fw-1 --dry-run
  k8splugin instance heal fw-1 --pod router-6d4cf56db6-x7k2p --wait`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&body.Pods, "pod", nil, "pod to replace, as NAME or NAMESPACE/NAME; can be repeated")
	flags.BoolVar(&body.Force, "force", false, "delete the pods regardless of disruption budgets")
	flags.BoolVar(&body.Drift, "drift", false, "also apply the objects again that other clients have changed")
	flags.DurationVar(&patience, "eviction-timeout", 0, "maximum time to wait for a disruption budget (default 1m)")
	f.define(cmd)
	to := func(id string) request {
		return ask(api.NewHealVnfInstanceRequestWithBody(root, id, nil, jsonMedia, nil))
	}
	cmd.RunE = s.act(&f, &body, to, func(_ []string) error {
		if patience != 0 {
			body.EvictionTimeout = patience.String()
		}
		return nil
	})
	return cmd
}

// nameAndWorkloads accepts the name of an instance, and workloads: at least so many
// arguments in all.
func nameAndWorkloads(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return cmp.Or(checkArgs(cmd, cobra.MinimumNArgs(least), args), checkNames(cmd, args))
	}
}
