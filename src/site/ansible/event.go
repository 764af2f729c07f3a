package ansible

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// parseEvent parses a line written by the callback plugin. It returns false if
// the line is not an event.
func parseEvent(line string) (site.Event, bool) {
	if !strings.HasPrefix(line, "{") {
		return site.Event{}, false
	}
	var said struct {
		Event   nf.EntryKind `json:"event"`
		Play    string       `json:"play"`
		Task    string       `json:"task"`
		Host    string       `json:"host"`
		Message string       `json:"message"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil || !slices.Contains(kinds(), said.Event) {
		return site.Event{}, false
	}
	return site.Event{LogEntry: nf.LogEntry{Kind: said.Event, Play: said.Play, Task: said.Task, Host: said.Host, Message: said.Message}}, true
}

// kinds returns the kinds of events in a run of playbooks.
func kinds() []nf.EntryKind {
	return []nf.EntryKind{nf.EventPlay, nf.EventTask, nf.EventOK, nf.EventChanged, nf.EventSkipped, nf.EventRetry, nf.EventIgnored,
		nf.EventFailed, nf.EventUnreachable, nf.EventStats, nf.EventNote}
}
