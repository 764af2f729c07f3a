package oof

import (
	"errors"
	"fmt"
	"slices"
)

// Operators of attributes.
const (
	Equal          = "="
	Less           = "<"
	Greater        = ">"
	LessOrEqual    = "<="
	GreaterOrEqual = ">="
	All            = "ALL" // the flavor's list has all elements of List
)

// Types of directives.
const (
	VNFC             = "vnfc"              // of a VDU; multicloud ignores others
	FlavorDirectives = "flavor_directives" // of the parameter that gets the flavor
)

// Demand is what a VNF needs of a cloud region.
type Demand struct {
	VDUs     []VDU
	Capacity Capacity
}

// VDU is a component of a VNF, which gets one flavor.
type VDU struct {
	ID           string
	Parameter    string // of the template that gets the name of the flavor
	Requirements []Requirement
}

// Requirement is an HPA feature that a flavor must have, or that is worth a score.
type Requirement struct {
	Feature      string // "hugePages"
	Architecture string // "generic", "Intel64"
	Version      string // "v1"
	Mandatory    bool
	Score        int // of an optional one
	Attributes   []Attribute
	Directives   []Directive // that are added to those of the VDU, such as sriovNICNetwork_directives
}

// Attribute is a condition for an attribute of a feature.
type Attribute struct {
	Key      string // "memoryPageSize"
	Operator string // of the flavor's value with this one
	Value    string
	Unit     string   // "KB", "MB", "GB", or none
	List     []string // of All, in place of Value
}

// Capacity is the room that a VNF needs in a cloud region.
type Capacity struct {
	CPUs    int64   `json:"vCPU"`
	Memory  float64 `json:"Memory"`  // GB
	Storage float64 `json:"Storage"` // GB
}

// check rejects a demand that HAS rejects.
func (d Demand) check() error {
	if len(d.VDUs) == 0 {
		return errors.New("cannot place a demand without VDUs")
	}
	if d.Capacity.CPUs < 0 || d.Capacity.Memory < 0 || d.Capacity.Storage < 0 {
		return errors.New("cannot place a demand: its capacity is negative")
	}
	known := map[string]bool{}
	for _, v := range d.VDUs {
		if v.ID == "" || known[v.ID] || v.Parameter == "" {
			return fmt.Errorf("cannot place VDU %q: it needs an id of its own, and a parameter", v.ID)
		}
		known[v.ID] = true
		for _, r := range v.Requirements {
			if err := r.check(); err != nil {
				return fmt.Errorf("cannot place VDU %q: %w", v.ID, err)
			}
		}
	}
	return nil
}

func (r Requirement) check() error {
	switch {
	case r.Feature == "" || r.Architecture == "" || r.Version == "":
		return fmt.Errorf("requirement %q needs a feature, an architecture and a version", r.Feature)
	case r.Score < 0 || r.Mandatory && r.Score != 0:
		return fmt.Errorf("requirement %q: only optional ones have a score, which is not negative", r.Feature)
	}
	for _, a := range r.Attributes {
		isOperator := slices.Contains([]string{Equal, Less, Greater, LessOrEqual, GreaterOrEqual, All}, a.Operator)
		if a.Key == "" || !isOperator || (a.Operator == All) != (len(a.List) > 0) || (a.Operator == All) == (a.Value != "") {
			return fmt.Errorf("attribute %q of requirement %q needs an operator, and a value or, with %s, a list", a.Key, r.Feature, All)
		}
	}
	return nil
}
