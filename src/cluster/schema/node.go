package schema

import "regexp"

// node is one compiled schema. The nodes of Go types form a graph, with one
// node per type; those of a custom resource form a tree.
type node struct {
	native   bool // of a Go type, where "" and absent are equivalent
	loose    bool // only types and field names are checked, not values
	types    typeSet
	format   string
	nullable bool
	required []string
	fields   map[string]*node
	extra    *node // of unlisted fields; nil: none
	open     bool  // unlisted fields are allowed
	item     *node
	list     listType
	keys     []string // of a list of type map
	deflt    any      // nil: none
	enum     []any
	limits   *limits // nil: none
	all      []*node // allOf
	some     []*node // anyOf
	one      []*node // oneOf
	not      *node   // not
	rule     rule    // a check that the schema does not contain; nil: none
}

// typeSet is the set of JSON types that a node allows; the empty set allows
// all.
type typeSet uint16

const (
	object typeSet = 1 << iota
	array
	text
	integer
	number
	boolean
	quantity // a string or number that parses as a Kubernetes quantity
)

// listType is x-kubernetes-list-type.
type listType uint8

const (
	plain listType = iota
	set
	keyed // "map"
)

// limits are the bounds of a value.
type limits struct {
	min, max             *float64
	aboveMin, belowMax   bool // the bound is exclusive
	multipleOf           *float64
	minLength, maxLength *int64
	minItems, maxItems   *int64
	minFields, maxFields *int64
	pattern              *regexp.Regexp
	patternCost          int
}
