package aai

import "slices"

// relate adds an edge between an object and the one that a relationship names.
func (tx *transaction) relate(n *node, relationship map[string]any) *refusal {
	if tx.graph.vertices[n.uri] == nil {
		return notFound(n)
	}
	other, err := tx.target(relationship)
	if err != nil {
		return err
	}
	if tx.graph.vertices[other.uri] == nil {
		return refuse(codeNoTarget, "no node of type %s at %s to make an edge to", other.object.Type, other.uri)
	}
	e, err := tx.edge(n, other, labelOf(relationship))
	if err != nil {
		return err
	}
	tx.touch(n.uri)
	if tx.graph.edges[e.from][e] {
		return nil
	}
	if err := tx.admit(e); err != nil {
		return err
	}
	tx.graph.setEdge(e, true)
	tx.touch(other.uri)
	return nil
}

// unrelate removes an edge, if it is there.
func (tx *transaction) unrelate(n *node, relationship map[string]any) *refusal {
	if tx.graph.vertices[n.uri] == nil {
		return notFound(n)
	}
	other, err := tx.target(relationship)
	if err != nil {
		return err
	}
	if tx.graph.vertices[other.uri] == nil {
		return nil
	}
	e, err := tx.edge(n, other, labelOf(relationship))
	if err != nil {
		return refuse(codeNoTarget, "%s", err.text)
	}
	tx.touch(n.uri)
	if tx.graph.setEdge(e, false) {
		tx.touch(other.uri)
	}
	return nil
}

// replaceEdges makes the edges of an object those that a document lists. There, a
// missing rule is a missing target.
func (tx *transaction) replaceEdges(n *node, relationships []any) *refusal {
	for _, e := range tx.graph.edgesOf(n.uri) {
		tx.graph.setEdge(e, false)
		tx.touch(e.other(n.uri))
	}
	for _, item := range relationships {
		relationship, ok := item.(map[string]any)
		if !ok {
			return refuse(codeInvalid, "a %s must be an object", edgeName)
		}
		err := tx.relate(n, relationship)
		if err != nil && err.code == codeNoEdgeRule {
			return refuse(codeNoTarget, "%s", err.text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func labelOf(relationship map[string]any) string {
	label, _ := relationship["relationship-label"].(string)
	return label
}

// target returns the other end of a relationship. A link takes precedence over
// keys.
func (tx *transaction) target(relationship map[string]any) (*node, *refusal) {
	if link, ok := relationship["related-link"].(string); ok && link != "" {
		return tx.schema.locateObject(tx.version, stripPrefix(link))
	}
	name, _ := relationship["related-to"].(string)
	pairs, _ := relationship["relationship-data"].([]any)
	object := tx.schema.objects[name]
	if object == nil || len(pairs) == 0 {
		return nil, refuse(codeInvalid, "a relationship needs a related-link, or related-to and relationship-data")
	}
	values := make(map[string]string, len(pairs))
	for _, item := range pairs {
		pair, _ := item.(map[string]any)
		key, _ := pair["relationship-key"].(string)
		values[key], _ = pair["relationship-value"].(string)
	}
	if n := tx.schema.compose(object, values); n != nil {
		return n, nil
	}
	return nil, refuse(codeInvalid, "relationship-data does not have all keys of a %s and its parents", name)
}

// compose returns the node of a type whose keys, and its parents' keys, are among
// the values, or nil.
func (s *schema) compose(o *object, values map[string]string) *node {
	keys := make([]string, len(o.Keys))
	for i, name := range o.Keys {
		keys[i] = values[o.Type+"."+name]
	}
	if slices.Contains(keys, "") {
		return nil
	}
	if slices.Contains(s.roots, o) {
		return newNode(nil, o, keys)
	}
	for _, r := range s.rules {
		if !r.Child || r.From != o.Type {
			continue
		}
		if parent := s.compose(s.objects[r.To], values); parent != nil {
			return newNode(parent, o, keys)
		}
	}
	return nil
}

// edge returns the edge between two objects that the rules permit.
func (tx *transaction) edge(n, other *node, label string) (edge, *refusal) {
	r, forward := tx.schema.rule(n.object, other.object, label)
	switch {
	case r == nil:
		return edge{}, refuse(codeNoEdgeRule, "no rule for an edge %q between %s and %s", label, n.object.Type, other.object.Type)
	case r.Child:
		return edge{}, refuse(codeContainment, "a %s contains a %s, which cannot be a relationship", r.To, r.From)
	case forward:
		return edge{r, n.uri, other.uri}, nil
	}
	return edge{r, other.uri, n.uri}, nil
}

// admit rejects an edge that its rule's multiplicity does not permit.
func (tx *transaction) admit(e edge) *refusal {
	single := map[string][]string{manyToOne: {e.from}, oneToMany: {e.to}, manyToMany: nil}
	for _, end := range single[e.rule.Multiplicity] {
		for present := range tx.graph.edges[end] {
			if present.rule == e.rule {
				return refuse(codeMultiplicity, "%s has an edge to %s, and %s permits one", end, present.other(end), e.rule.Multiplicity)
			}
		}
	}
	return nil
}
