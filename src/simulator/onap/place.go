package onap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/oof"
	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// demand is what the firewall needs of a region.
func (f *Flow) demand() oof.Demand {
	return oof.Demand{
		VDUs: []oof.VDU{{ID: "firewall", Parameter: "firewall_flavor", Requirements: []oof.Requirement{{
			Feature: "basicCapabilities", Architecture: "generic", Version: "v1", Mandatory: true,
			Attributes: []oof.Attribute{{Key: "numVirtualCpu", Operator: oof.GreaterOrEqual, Value: strconv.Itoa(max(f.cfg.CPUs, 1))}},
		}}}},
		Capacity: oof.Capacity{CPUs: 1, Memory: 1},
	}
}

// registry returns the path of a region's registration at ONAP's broker.
func (f *Flow) registry() string {
	return "/api/multicloud/v1/" + f.VNF.Owner + "/" + f.VNF.Region
}

// Place has ESR register the region, which the service imports from A&AI, and OOF choose
// it: A&AI then has the flavors of its nodes.
func (f *Flow) Place(ctx context.Context) error {
	_, err := f.call(ctx, http.MethodPost, f.registry()+"/registry", map[string]any{"defaultTenant": f.VNF.Tenant}, http.StatusAccepted)
	if err != nil {
		return err
	}
	f.cfg.Report("ESR registers the region " + f.VNF.Region)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		found, err := f.OOF.Place(limited, f.demand())
		switch {
		case err == nil && (found.Owner != f.VNF.Owner || found.Region != f.VNF.Region):
			return fmt.Errorf("cannot place the firewall: OOF chooses %s/%s", found.Owner, found.Region)
		case err == nil:
			f.VNF.OOF = found.Directives()
			f.cfg.Report("OOF places the firewall: region " + found.Region + ", flavor " + found.Choices[0].Flavor)
			return nil
		case !errors.Is(err, oof.ErrNoSolution) || !script.Hold(limited, nil, min(f.interval(), time.Second)):
			return fmt.Errorf("cannot place the firewall: %w", err)
		}
	}
}

// interval returns the interval between attempts.
func (f *Flow) interval() time.Duration {
	if f.cfg.Interval > 0 {
		return f.cfg.Interval
	}
	return time.Second
}

// deregister deregisters the region, whose flavors A&AI does not have then. An operation
// that is about to end may still use the region.
func (f *Flow) deregister(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		status, err := f.call(limited, http.MethodDelete, f.registry(), nil, http.StatusNoContent, http.StatusConflict)
		if err != nil {
			return err
		}
		if status != http.StatusConflict {
			f.cfg.Report("an operator deregisters the region " + f.VNF.Region)
			return nil
		}
		if !script.Hold(limited, nil, f.interval()) {
			return fmt.Errorf("cannot deregister the region: it is still used: %w", limited.Err())
		}
	}
}
