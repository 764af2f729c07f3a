package oof

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// answer is the response to a capacity_check.
type answer struct {
	Result *bool  `json:"result"`
	Zones  []zone `json:"AZs"`
}

// zone is an availability zone of a region.
type zone struct {
	Name         string   `json:"availability-zone-name"`
	CPUTotal     *int64   `json:"vCPUTotal"`
	CPUAvail     *int64   `json:"vCPUAvail"`
	MemoryTotal  *float64 `json:"MemoryTotal"`
	MemoryAvail  *float64 `json:"MemoryAvail"`
	StorageTotal *float64 `json:"StorageTotal"`
	StorageAvail *float64 `json:"StorageAvail"`
}

// checkCapacity rejects a region without room, or whose plugin does not say that there
// is.
func (s *Simulator) checkCapacity(ctx context.Context, c *candidate, d Demand) error {
	body, err := json.Marshal(d.Capacity)
	if err != nil {
		return fmt.Errorf("cannot encode a capacity: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, join(s.cfg.Multicloud+"/v1", c.owner, c.id)+"/capacity_check", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot check the capacity of %s/%s: %w", c.owner, c.id, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.cfg.Authorize != nil {
		s.cfg.Authorize(req)
	}
	var found answer
	status, err := s.send(req, &found)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cannot check the capacity of %s/%s: %w", c.owner, c.id, ctx.Err())
	case err != nil:
		c.reject(StepCapacity, "capacity_check fails: %v", err)
	case status != http.StatusOK:
		c.reject(StepCapacity, "capacity_check has the status %d", status)
	case found.Result == nil:
		s.violate("capacity_check of %s/%s has no result", c.owner, c.id)
		c.reject(StepCapacity, "capacity_check has no result")
	default:
		s.compareZones(c, d.Capacity, found)
	}
	return nil
}

// compareZones rejects a region without room, and compares the result with the zones, if
// there are any: one zone must have all the room.
func (s *Simulator) compareZones(c *candidate, want Capacity, found answer) {
	hasRoom := false
	for _, z := range found.Zones {
		if z.Name == "" || z.CPUTotal == nil || z.CPUAvail == nil || slices.Contains([]*float64{z.MemoryTotal, z.MemoryAvail, z.StorageTotal, z.StorageAvail}, nil) {
			s.violate("capacity_check of %s/%s has the incomplete zone %q", c.owner, c.id, z.Name)
			continue
		}
		hasRoom = hasRoom || *z.CPUAvail >= want.CPUs && *z.MemoryAvail >= want.Memory && *z.StorageAvail >= want.Storage
	}
	if len(found.Zones) > 0 && hasRoom != *found.Result {
		s.violate("capacity_check of %s/%s contradicts its zones: its result is %t", c.owner, c.id, *found.Result)
	}
	if !*found.Result {
		c.reject(StepCapacity, "capacity_check says that there is no room")
	}
}
