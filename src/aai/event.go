package aai

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// EventTopic is the topic of Kafka to which A&AI sends its events.
const EventTopic = "AAI-EVENT"

// Event is a message of EventTopic about one object, without the object's attributes,
// which may be credentials.
type Event struct {
	Source string // X-FromAppId of the client that made the change
	Type   string // of the object, such as "esr-system-info"
	Owner  string // of the cloud region that is the object or contains it; empty for other objects
	Region string // its cloud-region-id
}

// ParseEvent reads a message of EventTopic. It returns nf.Invalid if it is not an event.
// The error quotes nothing of the message.
func ParseEvent(message []byte) (Event, error) {
	var m struct {
		Header struct {
			Source string `json:"source-name"`
			Type   string `json:"entity-type"`
			Link   string `json:"entity-link"`
		} `json:"event-header"`
	}
	if json.Unmarshal(message, &m) != nil || m.Header.Type == "" || m.Header.Link == "" {
		return Event{}, nf.E(nf.Invalid, "read", "an event of A&AI", errors.New("it is not a JSON object with the type and the link of an object"))
	}
	e := Event{Source: m.Header.Source, Type: m.Header.Type}
	e.Owner, e.Region = regionIn(m.Header.Link)
	return e, nil
}

// regionIn returns the keys of the cloud region in a link; empty if it has none.
func regionIn(link string) (owner, id string) {
	_, rest, found := strings.Cut(link, regionsPath+"/cloud-region/")
	keys := strings.Split(rest, "/")
	if !found || len(keys) < 2 {
		return "", ""
	}
	owner, errOwner := url.PathUnescape(keys[0])
	id, errID := url.PathUnescape(keys[1])
	if errOwner != nil || errID != nil || owner == "" || id == "" {
		return "", ""
	}
	return owner, id
}
