package onap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/oof"
	"github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
	"github.com/multicloud-k8s/k8splugin/src/simulator/so"
)

// Ids of the model of the firewall's module in SDC.
const (
	service       = "vfw-service"
	invariant     = "vfw-invariant"
	customization = "vfw-customization"
	profile       = "vfw-profile"
	definition    = "/v1/rb/definition/" + invariant + "/" + customization
	joinTime      = 5 * time.Second
	limit         = 5 * time.Minute // of each wait for the service, which may be started again meanwhile
)

// Config describes a flow.
type Config struct {
	Service   string            // URL
	Sample    fs.FS             // folders chart and config: deployments/samples/vfw-onap
	Namespace string            // of the VNF
	Suffix    string            // of the names of the networks, which are unique in a region
	CPUs      int               // that each node of the firewall's flavor has at least; 1 by default
	Interval  time.Duration     // between polls; that of SO by default
	Client    *http.Client      // of requests to the service; http.DefaultClient by default
	Report    func(line string) // gets a line for each step
}

// Flow is one life of the firewall.
type Flow struct {
	SO    *so.Driver
	OOF   *oof.Simulator
	VNF   so.VNF
	Stack so.Stack // set by Create

	s        *Surroundings
	cfg      Config
	networks []so.Network
}

// Flow returns a flow with a service that has the arguments of the surroundings.
func (s *Surroundings) Flow(cfg Config) (*Flow, error) {
	if cfg.Client == nil {
		cfg.Client = http.DefaultClient
	}
	driver, err := so.New(so.Config{
		Service: so.Server{URL: cfg.Service, Client: cfg.Client}, AAI: so.Server{URL: s.aai.url, User: orchestrator, Password: secret(orchestrator)},
		Interval: cfg.Interval, Limit: limit, Report: cfg.Report,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start the flow: %w", err)
	}
	placement, err := oof.New(oof.Config{AAI: s.aai.url, User: placementUser, Password: secret(placementUser), Multicloud: cfg.Service + "/api/multicloud", Client: cfg.Client})
	if err != nil {
		return nil, fmt.Errorf("cannot start the flow: %w", err)
	}
	s.mu.Lock()
	s.service, s.client = cfg.Service, cfg.Client
	s.mu.Unlock()
	if cfg.Report == nil {
		cfg.Report = func(string) {}
	}
	f := &Flow{SO: driver, OOF: placement, s: s, cfg: cfg, VNF: so.VNF{
		Owner: s.Place.Owner, Region: s.Place.Region, Tenant: s.Place.Tenant, Service: "vfw-" + cfg.Namespace, ID: "vfw-vnf-" + cfg.Namespace, Type: "vfw",
		Module: "vfw-module-" + cfg.Namespace, Invariant: invariant, Version: "vfw-model", Customization: customization, Profile: profile, Release: "vfw-" + cfg.Namespace,
	}}
	f.VNF.Values = map[string]string{}
	for i, name := range []string{"unprotected", "protected"} {
		network := fmt.Sprintf("192.168.%d0.0/24", i+1)
		f.networks = append(f.networks, so.Network{Region: s.Place.Region, Name: name + cfg.Suffix, Driver: "multus", Subnets: []string{network}, Spec: map[string]any{
			"type": "bridge", "bridge": fmt.Sprintf("br%d", i+1), "ipam": map[string]any{"type": "whereabouts", "range": network},
		}})
		f.VNF.Values["networks."+name] = name + cfg.Suffix
	}
	return f, nil
}

// Run runs all steps.
func (f *Flow) Run(ctx context.Context) error {
	for _, step := range f.Steps() {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Steps returns the steps in their order.
func (f *Flow) Steps() []func(context.Context) error {
	return []func(context.Context) error{f.Distribute, f.Place, f.Create, f.Configure, f.Heal, f.Delete}
}

// Distribute has SDC distribute the firewall, until the service has reported that it is
// deployed.
func (f *Flow) Distribute(ctx context.Context) error {
	chart, err := pack(f.cfg.Sample, "chart", "vfw/")
	if err != nil {
		return err
	}
	_, err = f.s.SDC.Put(sdc.Service{UUID: service, Name: "vfw", Resources: []sdc.Resource{{
		Instance: "vfw 0", Name: "vfw", Artifacts: []sdc.Artifact{{Name: "helm_vfw.tgz", Type: "HELM", UUID: "vfw-chart", Content: chart}},
		Modules: []sdc.Module{{Name: "Vfw..helm_vfw..module-0", InvariantUUID: invariant, UUID: f.VNF.Version, CustomizationUUID: customization, Artifacts: []string{"vfw-chart"}}},
	}}})
	if err != nil {
		return fmt.Errorf("cannot design the firewall: %w", err)
	}
	// A new consumer begins at the end of the topic, so it may miss the first notifications.
	for wait := joinTime; ; wait = min(2*wait, time.Minute) {
		last, err := f.distribute(ctx, wait)
		switch {
		case err == nil && last != "COMPONENT_DONE_OK":
			return fmt.Errorf("cannot distribute the firewall: the service reports %s", last)
		case err == nil:
			f.cfg.Report("SDC distributes the firewall: the service reports " + last)
			return nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// distribute distributes the firewall once, and returns the last status of the service.
func (f *Flow) distribute(ctx context.Context, wait time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	id, err := f.s.SDC.Distribute(limited, service)
	if err != nil {
		return "", fmt.Errorf("cannot distribute the firewall: %w", err)
	}
	all, err := f.s.SDC.Await(limited, id)
	if err != nil {
		return "", fmt.Errorf("cannot distribute the firewall: %w", err)
	}
	if len(all) == 0 {
		return "", errors.New("cannot distribute the firewall: the service reports nothing")
	}
	return all[len(all)-1].Status, nil
}

// Create has CDS upload the profile, and SO create the networks and the stack.
func (f *Flow) Create(ctx context.Context) error {
	if err := f.uploadProfile(ctx); err != nil {
		return err
	}
	for _, n := range f.networks {
		if err := f.SO.CreateNetwork(ctx, f.VNF, n); err != nil {
			return fmt.Errorf("cannot create the networks: %w", err)
		}
	}
	if err := f.SO.Plan(ctx, f.VNF); err != nil {
		return fmt.Errorf("cannot plan the VNF: %w", err)
	}
	var err error
	if f.Stack, err = f.SO.CreateStack(ctx, f.VNF); err != nil {
		return fmt.Errorf("cannot create the VNF: %w", err)
	}
	return f.Inventory(ctx)
}

// Inventory waits until A&AI has the VNF with its addresses.
func (f *Flow) Inventory(ctx context.Context) (err error) {
	f.Stack.Listed, err = f.SO.UpdateInventory(ctx, f.VNF, f.Stack)
	if err != nil {
		err = fmt.Errorf("cannot update A&AI: %w", err)
	}
	return err
}

// Heal heals the VNF.
func (f *Flow) Heal(ctx context.Context) error {
	if err := f.SO.Heal(ctx, f.Stack.ID); err != nil {
		return fmt.Errorf("cannot heal the VNF: %w", err)
	}
	return nil
}

// Delete has SO delete the stack, the VNF and the networks, and an operator deregister the
// region. SDC's definition stays.
func (f *Flow) Delete(ctx context.Context) error {
	if err := f.SO.DeleteStack(ctx, f.VNF, f.Stack); err != nil {
		return fmt.Errorf("cannot delete the VNF: %w", err)
	}
	if err := f.SO.Clear(ctx, f.VNF); err != nil {
		return fmt.Errorf("cannot delete the VNF: %w", err)
	}
	for _, n := range f.networks {
		if err := f.SO.DeleteNetwork(ctx, f.VNF, n); err != nil {
			return fmt.Errorf("cannot delete the networks: %w", err)
		}
	}
	return f.deregister(ctx)
}
