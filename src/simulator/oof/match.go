package oof

import (
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// flavorDocument is a flavor of A&AI.
type flavorDocument struct {
	ID           string `json:"flavor-id"`
	Name         string `json:"flavor-name"`
	Capabilities struct {
		Capabilities []capabilityDocument `json:"hpa-capability"`
	} `json:"hpa-capabilities"`
}

// capabilityDocument is an hpa-capability of a flavor.
type capabilityDocument struct {
	Feature      string              `json:"hpa-feature"`
	Architecture string              `json:"architecture"`
	Version      string              `json:"hpa-version"`
	Attributes   []attributeDocument `json:"hpa-feature-attributes"`
}

// attributeDocument is an attribute of a capability. Its value is a JSON text.
type attributeDocument struct {
	Key   string `json:"hpa-attribute-key"`
	Value string `json:"hpa-attribute-value"`
}

// matchFlavors chooses a flavor for each VDU, or rejects the region.
func (s *Simulator) matchFlavors(ctx context.Context, c *candidate, d Demand) error {
	var list struct {
		Flavors []flavorDocument `json:"flavor"`
	}
	path := join("/cloud-infrastructure/cloud-regions/cloud-region", c.owner, c.id) + "/flavors/?depth=all&nodes-only=true"
	if _, err := s.read(ctx, path, &list); err != nil {
		return err
	}
	if len(list.Flavors) == 0 {
		c.reject(StepFlavor, "it has no flavors")
		return nil
	}
	for _, v := range d.VDUs {
		best, lacks := -1, []string{}
		for _, f := range list.Flavors {
			score, lacking := s.match(f, v)
			if lacking != "" {
				lacks = append(lacks, f.Name+" lacks "+lacking)
				continue
			}
			if score > best { // of equal ones, the first
				best = score
				c.choices = append(slices.DeleteFunc(c.choices, func(o Choice) bool { return o.VDU.ID == v.ID }), Choice{v, f.Name, score})
			}
		}
		if best < 0 {
			c.reject(StepFlavor, "no flavor fits VDU %s: %s", v.ID, strings.Join(lacks, ", "))
			return nil
		}
	}
	return nil
}

// match returns the score of a flavor for a VDU, or the mandatory requirement that it does
// not meet. A flavor without capabilities fits nothing.
func (s *Simulator) match(f flavorDocument, v VDU) (score int, lacking string) {
	if len(f.Capabilities.Capabilities) == 0 {
		return 0, "HPA capabilities"
	}
	for _, r := range v.Requirements {
		isMet := slices.ContainsFunc(f.Capabilities.Capabilities, func(c capabilityDocument) bool { return s.meets(f, c, r) })
		switch {
		case isMet:
			score += r.Score
		case r.Mandatory:
			return 0, r.Feature
		}
	}
	return score, ""
}

// meets reports whether one capability meets a requirement.
func (s *Simulator) meets(f flavorDocument, c capabilityDocument, r Requirement) bool {
	if c.Feature != r.Feature || c.Architecture != r.Architecture || c.Version != r.Version {
		return false
	}
	for _, want := range r.Attributes {
		i := slices.IndexFunc(c.Attributes, func(have attributeDocument) bool { return have.Key == want.Key })
		if i < 0 || !s.satisfies(c.Attributes[i], want, c.Feature+" of flavor "+f.Name) {
			return false
		}
	}
	return true
}

// satisfies reports whether the attribute of a flavor satisfies the wanted one.
func (s *Simulator) satisfies(have attributeDocument, want Attribute, of string) bool {
	var found struct {
		Value any    `json:"value"`
		Unit  string `json:"unit"`
	}
	if err := json.Unmarshal([]byte(have.Value), &found); err != nil {
		s.violate("attribute %s of %s is not a JSON object: %s", have.Key, of, have.Value)
		return false
	}
	switch v := found.Value.(type) {
	case string:
		return want.compare(normalize(v, found.Unit))
	case []any:
		return want.contains(v)
	}
	s.violate("the value of attribute %s of %s is neither a string nor a list: %s", have.Key, of, have.Value) // HAS fails
	return false
}

// compare compares the value of a flavor with the wanted one. Only digits have an order;
// other texts are equal or not.
func (a Attribute) compare(have string) bool {
	want := normalize(a.Value, a.Unit)
	x, isNumber := digits(have)
	y, isWanted := digits(want)
	if !isNumber || !isWanted {
		return a.Operator == Equal && have == want
	}
	order := x.Cmp(y)
	switch a.Operator {
	case Equal:
		return order == 0
	case Less:
		return order < 0
	case Greater:
		return order > 0
	case LessOrEqual:
		return order <= 0
	case GreaterOrEqual:
		return order >= 0
	}
	return false
}

// contains reports whether the list of a flavor has all wanted elements.
func (a Attribute) contains(have []any) bool {
	if a.Operator != All {
		return false
	}
	return !slices.ContainsFunc(a.List, func(want string) bool { return !slices.Contains(have, any(want)) })
}

// normalize returns a number of bytes for digits with a unit, and other values as they are.
func normalize(value, unit string) string {
	n, isNumber := digits(value)
	shift, isUnit := map[string]uint{"KB": 10, "MB": 20, "GB": 30}[unit]
	if !isNumber || !isUnit {
		return value
	}
	return n.Lsh(n, shift).String()
}

// digits returns the number of a text that has digits only.
func digits(text string) (*big.Int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return nil, false
	}
	return new(big.Int).SetString(text, 10)
}
