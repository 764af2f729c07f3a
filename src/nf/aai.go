package nf

import (
	"strings"
	"time"
)

// AAI says what ONAP's inventory A&AI is to have of a VNF instance.
type AAI struct {
	Writer AAIWriter `json:"writer,omitempty"`
	VNF    string    `json:"generic_vnf_id,omitempty"` // of the generic-vnf that its objects are related to; empty: none
	Module string    `json:"vf_module_id,omitempty"`   // of a vf-module of VNF; empty: none
	Tenant string    `json:"tenant_id,omitempty"`      // of the cloud region, that contains its objects; empty: that of the region's record
}

// AAIWriter is what writes the objects of an instance to A&AI. Two writers would delete
// each other's objects.
type AAIWriter string

// The writers.
const (
	AAIService AAIWriter = "service" // this service; also ""
	AAIAdapter AAIWriter = "adapter" // SO's adapter for CNFs
	AAINone    AAIWriter = "none"
)

// AAIInForce returns what A&AI is to have of the instance: AAIPolicy, but nothing while
// Unlisted.
func (in *Instance) AAIInForce() AAI {
	out := in.AAIPolicy()
	if in.Unlisted {
		out.Writer = AAINone
	}
	return out
}

// AAIPolicy returns what A&AI is to have of the instance while it exists. Once SO's adapter
// has subscribed to the instance, the adapter writes its objects, whatever the revisions
// say: a revision may be older than the subscription.
func (in *Instance) AAIPolicy() AAI {
	out := in.AAI
	if in.AAIAdapter && out.Writer != AAINone {
		out.Writer = AAIAdapter
	}
	return out
}

const maxAAIName = 256 // bytes

func (a AAI) violations() Violations {
	var v Violations
	switch a.Writer {
	case "", AAIService, AAIAdapter, AAINone:
	default:
		v = append(v, Violation{Field: "aai.writer", Message: "must be service, adapter or none"})
	}
	for _, f := range []struct{ field, value string }{
		{"aai.generic_vnf_id", a.VNF}, {"aai.vf_module_id", a.Module}, {"aai.tenant_id", a.Tenant},
	} {
		v = append(v, CheckAAIName(f.field, f.value)...)
	}
	if a.Module != "" && a.VNF == "" {
		v = append(v, Violation{Field: "aai.generic_vnf_id", Message: "is missing, because vf_module_id is set: a vf-module belongs to a generic-vnf"})
	}
	return v
}

// CheckAAIName returns a violation if a text cannot be the key of an object of A&AI. An
// empty one can.
func CheckAAIName(field, name string) Violations {
	switch {
	case len(name) > maxAAIName:
		return Violations{{Field: field, Message: "is longer than 256 bytes"}}
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return Violations{{Field: field, Message: "contains blanks or control characters"}}
	}
	return nil
}

// Listing is what is known of an instance, a network or a cloud region in A&AI.
type Listing struct {
	Subject  Subject
	State    ListingState
	Reason   string            // of the last failure, or of ListingOff: a text for people
	Since    time.Time         // when it was last clean; zero: it is, or never was. Of ListingOrphaned: when the objects were found
	Retry    time.Time         // when it is written next; zero: after a change
	Missing  []string          // paths of objects of others that it waits for
	Rejected map[string]string // what A&AI said, by the path of an object
	Objects  []string          // paths of those that A&AI has, or may have
	Asked    time.Time         // when a comparison was last requested; zero: never
	Pending  bool              // it has not been done yet
}

// ListingState is the relation between a subject and A&AI.
type ListingState string

// The states.
const (
	ListingClean   ListingState = "clean"   // A&AI is equal
	ListingDirty   ListingState = "dirty"   // it is to be written, or to be deleted
	ListingWaiting ListingState = "waiting" // for an object of others
	ListingParked  ListingState = "parked"  // A&AI rejects an object, until something changes
	ListingOff     ListingState = "off"     // A&AI is to have nothing of it

	// ListingOrphaned: A&AI has objects of an instance that does not exist, which SO's
	// adapter has written. The service does not delete them.
	ListingOrphaned ListingState = "orphaned"
)
