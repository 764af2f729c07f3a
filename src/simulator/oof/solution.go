package oof

// Solution is the result of a placement.
type Solution struct {
	Owner    string // of the cloud region
	Region   string
	Score    int // the sum of those of its flavors
	Choices  []Choice
	Rejected []Rejection // the other regions, in A&AI's order
}

// Choice is the flavor of one VDU.
type Choice struct {
	VDU    VDU
	Flavor string // flavor-name

	score int
}

// Step is a step of a placement.
type Step string

// Steps of a placement, in their order.
const (
	StepRegion   Step = "region"   // the region's attributes, and its complex
	StepFlavor   Step = "flavor"   // the HPA capabilities of its flavors
	StepCapacity Step = "capacity" // its room
	StepScore    Step = "score"    // another region has a higher one, or precedes it
)

// Rejection is a region that was not chosen.
type Rejection struct {
	Owner  string
	Region string
	Step   Step
	Reason string // for people
}

// Directives is a list of directives in the form of infra_workload's oof_directives.
type Directives struct {
	Directives []VDUDirectives `json:"directives"`
}

// VDUDirectives are the directives of one VDU.
type VDUDirectives struct {
	ID         string      `json:"id"`
	Type       string      `json:"type"` // VNFC
	Directives []Directive `json:"directives"`
}

// Directive sets parameters of a template.
type Directive struct {
	Type       string      `json:"type"`
	Attributes []Parameter `json:"attributes"`
}

// Parameter is a parameter of a template, and its value.
type Parameter struct {
	Name  string `json:"attribute_name"`
	Value string `json:"attribute_value"`
}

// Directives returns the oof_directives of ONAP's infra_workload.
func (s Solution) Directives() Directives {
	out := Directives{Directives: []VDUDirectives{}}
	for _, c := range s.Choices {
		all := []Directive{{FlavorDirectives, []Parameter{{c.VDU.Parameter, c.Flavor}}}}
		for _, r := range c.VDU.Requirements {
			all = append(all, r.Directives...)
		}
		out.Directives = append(out.Directives, VDUDirectives{c.VDU.ID, VNFC, all})
	}
	return out
}

// Parameters returns the oof_parameters of the service's own API: one set of values, which
// has the directives, and the parameters of a template that they set.
func (s Solution) Parameters() []map[string]any {
	all := s.Directives().Directives
	values := map[string]any{}
	for _, vdu := range all {
		for _, d := range vdu.Directives {
			for _, p := range d.Attributes {
				values[p.Name] = p.Value
			}
		}
	}
	values["directives"] = all
	return []map[string]any{values}
}
