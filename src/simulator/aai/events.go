package aai

import (
	"encoding/json"
	"fmt"
)

// The actions of events.
const (
	actionCreate = "CREATE"
	actionUpdate = "UPDATE"
	actionDelete = "DELETE"
)

// eventHeader is the header of a message of the topic AAI-EVENT, as class
// NotificationEventHeader of A&AI has it.
type eventHeader struct {
	ID         string `json:"id"`
	Timestamp  string `json:"timestamp"`
	Source     string `json:"source-name"`
	Domain     string `json:"domain"`
	Sequence   string `json:"sequence-number"`
	Severity   string `json:"severity"`
	Type       string `json:"event-type"`
	Version    string `json:"version"`
	Action     string `json:"action"`
	EntityType string `json:"entity-type"`
	TopType    string `json:"top-entity-type"`
	Link       string `json:"entity-link"`
}

// events returns the messages about the changes of a request: one for each object, with
// all its children, within the objects that contain it.
func (s *Simulator) events(tx *transaction, by caller, changes []change) [][]byte {
	if s.cfg.Publish == nil {
		return nil
	}
	first := make(map[string]change)
	var order []string
	for _, c := range changes {
		uri := c.vertex().node.uri
		was, known := first[uri]
		if !known {
			was = c
			order = append(order, uri)
		}
		first[uri] = change{was.from, c.to}
	}
	var out [][]byte
	for _, uri := range order {
		if c := first[uri]; c.from != nil || c.to != nil {
			out = append(out, s.event(tx, by, c))
		}
	}
	return out
}

// vertex returns the object, as it is or was.
func (c change) vertex() *vertex {
	if c.to != nil {
		return c.to
	}
	return c.from
}

func (c change) action() string {
	switch {
	case c.from == nil:
		return actionCreate
	case c.to == nil:
		return actionDelete
	}
	return actionUpdate
}

func (s *Simulator) event(tx *transaction, by caller, c change) []byte {
	v := c.vertex()
	chain := v.node.chain()
	entity := tx.render(v, query{depth: allDepths})
	for i := len(chain) - 2; i >= 0; i-- {
		outer := keysAsDocument(chain[i])
		name, array := chain[i+1].object.container()
		outer[name] = []any{entity}
		if array != "" {
			outer[name] = map[string]any{array: []any{entity}}
		}
		entity = outer
	}
	version := fmt.Sprintf("v%d", tx.version)
	message, err := json.Marshal(map[string]any{
		"cambria.partition": "AAI",
		"event-header": eventHeader{
			ID: by.transactionID, Timestamp: s.cfg.Clock().UTC().Format("20060102-15:04:05:000"), Source: by.appID, Domain: "dev", Sequence: "0", Severity: "NORMAL",
			Type: "AAI-EVENT", Version: version, Action: c.action(), EntityType: v.node.object.Type, TopType: chain[0].object.Type, Link: "/aai/" + version + v.node.uri,
		},
		"entity": entity,
	})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return message
}

// keysAsDocument returns an object with its keys only.
func keysAsDocument(n *node) map[string]any {
	out := map[string]any{}
	for i, name := range n.object.Keys {
		out[name] = n.keys[i]
	}
	return out
}
