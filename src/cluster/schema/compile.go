package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Limits for the schema of one kind, whatever its content.
const (
	maxNodes       = 20_000 // large public CRDs have 2 000
	maxDepth       = 100
	maxPattern     = 10_000 // instructions of one pattern, with repetitions expanded
	maxPatterns    = 50_000 // instructions of all patterns of a kind
	maxPatternText = 4 << 10
)

// Components for which every API server has its own decoder.
const (
	meta        = "io.k8s.apimachinery.pkg.apis.meta.v1."
	objectMeta  = meta + "ObjectMeta"
	timeType    = meta + "Time"
	microTime   = meta + "MicroTime"
	fieldsV1    = meta + "FieldsV1"
	intOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
	quantities  = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	refPrefix   = "#/components/schemas/"
)

// Extensions that affect which fields are known.
const (
	preserve = "x-kubernetes-preserve-unknown-fields"
	embedded = "x-kubernetes-embedded-resource"
)

// compiler compiles the schemas of one document to nodes.
type compiler struct {
	doc      *document
	native   bool  // Go types; otherwise a custom resource
	metadata *node // of complete objects; nil: unknown
	open     int   // number of enclosing nodes that allow unknown fields
	nodes    int
	patterns int
	depth    int

	rules    int // number of x-kubernetes-validations
	ruleText int // their size in bytes
}

// component compiles a component of the document, once.
func (c *compiler) component(name string) (*node, error) {
	if n := c.doc.types[name]; n != nil {
		return n, nil
	}
	n := special(name)
	if n != nil {
		c.doc.types[name] = n
		return n, nil
	}
	n = &node{}
	c.doc.types[name] = n // set before it is filled, as a type may contain itself
	text, ok := c.doc.components[name]
	if !ok {
		return nil, fmt.Errorf("no schema is called %s", show(name))
	}
	r, err := readSchema(text)
	if err == nil {
		err = c.fill(n, r)
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", show(name), err)
	}
	adjust(n, name, r)
	if c.doc.old && name == statefulSetSpec {
		loosen(n)
	}
	return n, nil
}

// special returns the node of a component that has its own decoder, or nil.
func special(name string) *node {
	switch name {
	case intOrString:
		return &node{types: text | integer, nullable: true}
	case quantities:
		return &node{types: quantity, nullable: true}
	case timeType, microTime:
		return &node{types: text, format: "date-time", nullable: true}
	case fieldsV1:
		return &node{types: object, nullable: true, open: true}
	}
	return nil
}

// node compiles a schema and everything below it.
func (c *compiler) node(r raw) (*node, error) {
	if ref := reference(r); ref != "" {
		if !c.native {
			return nil, fmt.Errorf("a reference to %s: %w", show(ref), errNoSchema)
		}
		return c.component(ref)
	}
	n := &node{}
	return n, c.fill(n, r)
}

// reference returns the name of the component that a schema refers to, or "". A
// description or default next to the reference is ignored.
func reference(r raw) string {
	ref := r.text("$ref")
	if all := r.schemas("allOf"); ref == "" && len(all) == 1 && r["type"] == nil && r["properties"] == nil {
		ref = all[0].text("$ref")
	}
	return strings.TrimPrefix(ref, refPrefix)
}

// fill compiles a schema that is not a reference into n.
func (c *compiler) fill(n *node, r raw) error {
	c.nodes += 1 + (values(r["default"])+values(r["enum"])+values(r["required"]))/perNode
	c.depth++
	defer func() { c.depth-- }()
	if c.nodes > maxNodes || c.depth > maxDepth {
		return fmt.Errorf("more than %d nodes or %d levels: %w", maxNodes, maxDepth, errLimit)
	}
	if r.flag(embedded) {
		r = withoutMetadata(r)
	}
	c.countRules(r)
	*n = node{
		types: typeOf(r), format: r.text("format"), nullable: r.flag("nullable") || c.native,
		list: listTypeOf(r), keys: r.texts("x-kubernetes-list-map-keys"),
		deflt: r["default"], native: c.native,
	}
	if !c.native {
		n.required = r.texts("required")
		n.enum, _ = r["enum"].([]any)
		if err := c.limits(n, r); err != nil {
			return err
		}
	}
	if err := c.children(n, r); err != nil {
		return err
	}
	if r.flag(embedded) {
		n.whole(c.metadata)
	}
	return c.combinations(n, r)
}

func (c *compiler) countRules(r raw) {
	rules := r.schemas("x-kubernetes-validations")
	c.rules += len(rules)
	for _, rule := range rules {
		c.ruleText += len(rule.text("rule")) + len(rule.text("messageExpression"))
	}
}

// perNode is how many plain values count as one node.
const perNode = 8

// values counts a value and all values in it.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			n += 1 + values(v[name])
		}
	case []any:
		for i := range v {
			n += values(v[i])
		}
	}
	return n
}

func typeOf(r raw) typeSet {
	if r.flag("x-kubernetes-int-or-string") {
		return integer | text
	}
	switch r.text("type") {
	case "object":
		return object
	case "array":
		return array
	case "string":
		return text
	case "integer":
		return integer
	case "number":
		return number
	case "boolean":
		return boolean
	}
	return 0
}

func listTypeOf(r raw) listType {
	switch r.text("x-kubernetes-list-type") {
	case "set":
		return set
	case "map":
		return keyed
	}
	return plain
}

// limits compiles the bounds of a value.
func (c *compiler) limits(n *node, r raw) error {
	l := limits{
		min: r.number("minimum"), max: r.number("maximum"), aboveMin: r.flag("exclusiveMinimum"), belowMax: r.flag("exclusiveMaximum"),
		multipleOf: r.number("multipleOf"), minLength: r.count("minLength"), maxLength: r.count("maxLength"),
		minItems: r.count("minItems"), maxItems: r.count("maxItems"), minFields: r.count("minProperties"), maxFields: r.count("maxProperties"),
	}
	if p := r.text("pattern"); p != "" {
		if err := c.pattern(&l, p); err != nil {
			return err
		}
	}
	if l != (limits{}) {
		n.limits = &l
	}
	return nil
}

// pattern compiles a pattern. It ignores a pattern that Go cannot parse, as an
// API server cannot parse it either. It returns an error for a pattern that
// would take too much memory.
func (c *compiler) pattern(l *limits, pattern string) error {
	if len(pattern) > maxPatternText {
		return fmt.Errorf("a pattern of %d bytes: %w", len(pattern), errLimit)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil //nolint:nilerr // There is nothing to check then.
	}
	l.patternCost = cost(parsed)
	if c.patterns += l.patternCost; l.patternCost > maxPattern || c.patterns > maxPatterns {
		return fmt.Errorf("patterns of %d instructions: %w", c.patterns, errLimit)
	}
	l.pattern, err = regexp.Compile(pattern)
	return err
}

// cost returns about how many instructions a pattern compiles to. Repetitions
// are expanded, so a short pattern can be large.
func cost(re *syntax.Regexp) int {
	sum := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		sum = min(sum+cost(sub), 2*maxPatterns)
	}
	if re.Op == syntax.OpRepeat {
		sum *= max(re.Min, re.Max, 1)
	}
	return min(sum, 2*maxPatterns)
}

// children compiles the schemas of fields and items.
func (c *compiler) children(n *node, r raw) (err error) {
	if r.flag(preserve) {
		// Server-side apply then ignores all unknown fields below.
		c.open++
		defer func() { c.open-- }()
	}
	fields, _ := r["properties"].(map[string]any)
	if len(fields) > 0 {
		n.fields = make(map[string]*node, len(fields))
	}
	for name, f := range fields {
		m, _ := f.(map[string]any)
		if n.fields[name], err = c.node(m); err != nil {
			return err
		}
	}
	if items, ok := r.schema("items"); ok {
		if n.item, err = c.node(items); err != nil {
			return err
		}
	}
	extra, hasExtra := r.schema("additionalProperties")
	if hasExtra {
		if n.extra, err = c.node(extra); err != nil {
			return err
		}
	}
	n.open = c.open > 0 || n.types&object == 0 || r.flag("additionalProperties") ||
		len(fields) == 0 && !hasExtra || // server-side apply accepts any object
		c.native && (r["allOf"] != nil || r["anyOf"] != nil || r["oneOf"] != nil) // ignored
	return nil
}

// combinations compiles allOf, anyOf, oneOf and not.
func (c *compiler) combinations(n *node, r raw) (err error) {
	if c.native {
		return nil // only types with their own decoder have any
	}
	for key, to := range map[string]*[]*node{"allOf": &n.all, "anyOf": &n.some, "oneOf": &n.one} {
		for _, sub := range r.schemas(key) {
			made, err := c.node(sub)
			if err != nil {
				return err
			}
			*to = append(*to, made)
		}
	}
	if not, ok := r.schema("not"); ok {
		n.not, err = c.node(not)
	}
	return err
}
