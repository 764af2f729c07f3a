package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// placementFlags holds what a new instance needs of its region.
type placementFlags struct {
	needs                   wire.PlacementNeeds
	prefer                  string
	features, total, podAsk labelsFlag
	pods                    int
}

func (f *placementFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.needs.Selector, "placement-selector", "", "choose a region with these labels, such as site=edge")
	flags.StringSliceVar(&f.needs.Regions, "placement-region", nil, "choose one of these regions")
	flags.Var(&f.features, "placement-feature", "node feature that the region must have; * means any value")
	flags.Var(&f.total, "placement-room", "room that must be free on all nodes together, such as cpu=16")
	flags.Var(&f.podAsk, "placement-pod", "room that must be free for one pod, such as memory=8Gi")
	flags.IntVar(&f.pods, "placement-pods", 0, "number of such pods that must fit (default 1)")
	flags.StringSliceVar(&f.needs.APIs, "placement-api", nil, "API group, group/version or group/version/Kind that the region must serve")
	flags.StringSliceVar(&f.needs.Networks, "placement-network", nil, "kind of networks that the region must have, such as kube-ovn")
	flags.StringSliceVar(&f.needs.Plugins, "placement-cni", nil, "CNI plugin that the region must not declare as absent")
	flags.StringVar(&f.prefer, "placement-prefer", "", "region that is chosen of those that fit: fewest-instances or most-room")
	completeFlag(cmd, "placement-prefer", fixed("fewest-instances", "most-room"))
}

// given returns the needs if one of the flags is given, or nil.
func (f *placementFlags) given(cmd *cobra.Command) *wire.PlacementNeeds {
	some := false
	for _, name := range []string{"selector", "region", "feature", "room", "pod", "pods", "api", "network", "cni", "prefer"} {
		some = some || cmd.Flags().Changed("placement-"+name)
	}
	if !some {
		return nil
	}
	out := f.needs
	out.Features = present(f.features.labels)
	out.Prefer = nf.PlacementRule(f.prefer)
	if room := (wire.Room{Total: present(f.total.labels), Pod: present(f.podAsk.labels), Pods: f.pods}); len(room.Total)+len(room.Pod)+room.Pods > 0 {
		out.Room = &room
	}
	return &out
}

// printPlacement prints how a region was chosen.
func (pr *printer) printPlacement(w io.Writer, p *wire.Placement) error {
	if p == nil {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, pr.format.name == formatWide, []column[wire.Candidate]{
		{"REGION", false, func(c wire.Candidate) string { return c.Region }},
		{"PLACEMENT", false, func(c wire.Candidate) string { return string(c.Reason) }},
		{"INSTANCES", false, func(c wire.Candidate) string { return strconv.Itoa(c.Instances) }},
		{"DETAIL", false, func(c wire.Candidate) string { return c.Detail }},
	}, p.Candidates)
}
