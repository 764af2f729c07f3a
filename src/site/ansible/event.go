package ansible

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// parseEvent reads a line of what the callback plugin writes. False means that
// the line is none.
func parseEvent(line string) (site.Event, bool) {
	if !strings.HasPrefix(line, "{") {
		return site.Event{}, false
	}
	var said struct {
		Event   nf.SiteEventKind `json:"event"`
		Play    string           `json:"play"`
		Task    string           `json:"task"`
		Host    string           `json:"host"`
		Message string           `json:"message"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil || !slices.Contains(kinds(), said.Event) {
		return site.Event{}, false
	}
	return site.Event{SiteEvent: nf.SiteEvent{Kind: said.Event, Play: said.Play, Task: said.Task, Host: said.Host, Message: said.Message}}, true
}

// kinds are the events that a run of playbooks has.
func kinds() []nf.SiteEventKind {
	return []nf.SiteEventKind{nf.EventPlay, nf.EventTask, nf.EventOK, nf.EventChanged, nf.EventSkipped, nf.EventRetry, nf.EventIgnored,
		nf.EventFailed, nf.EventUnreachable, nf.EventStats, nf.EventNote}
}
