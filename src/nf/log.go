package nf

import "time"

// LogEntry is one entry of an operation's log. It contains no known secret.
type LogEntry struct {
	Number   int         `json:"number"` // from 1
	Time     time.Time   `json:"time"`
	Kind     EntryKind   `json:"kind"`
	Step     string      `json:"step,omitempty"` // of the operation
	Play     string      `json:"play,omitempty"`
	Task     string      `json:"task,omitempty"`
	Host     string      `json:"host,omitempty"`
	Message  string      `json:"message,omitempty"`
	Mentions []Mentioned `json:"mentions,omitempty"` // the mentions in Message
}

// Said returns the message with its mentions.
func (e LogEntry) Said() Text { return Text{e.Message, e.Mentions} }

// EntryKind is the kind of an entry.
type EntryKind string

// The kinds of entries.
const (
	EventPlay        EntryKind = "play"        // a play starts
	EventTask        EntryKind = "task"        // a task starts
	EventOK          EntryKind = "ok"          // a task succeeded on a host, and changed nothing
	EventChanged     EntryKind = "changed"     // a task succeeded on a host, and changed something
	EventSkipped     EntryKind = "skipped"     // a task had nothing to do on a host
	EventRetry       EntryKind = "retry"       // a task is retried
	EventIgnored     EntryKind = "ignored"     // a task failed, and the failure is ignored
	EventFailed      EntryKind = "failed"      // a task failed
	EventUnreachable EntryKind = "unreachable" // the host could not be reached
	EventStats       EntryKind = "stats"       // summary of a host
	EventLine        EntryKind = "line"        // a line of a script's output
	EventNote        EntryKind = "note"        // a message of the service
)

// OperationUpdate is one update of an operation: its record, or an entry of its
// log.
type OperationUpdate struct {
	Operation *Operation // nil: the update is an entry
	Entry     LogEntry
}
