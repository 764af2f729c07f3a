package nf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DriftMode says what the service does about drift of an instance: objects in the
// region that differ from those that it has applied.
type DriftMode string

// The modes.
const (
	DriftOff     DriftMode = "off"     // the objects are not compared; also ""
	DriftWarn    DriftMode = "warn"    // drift is shown, logged and counted
	DriftCorrect DriftMode = "correct" // the objects are also applied again
)

// DriftPolicy is what an instance asks for.
type DriftPolicy struct {
	Mode   DriftMode     `json:"mode,omitempty"`
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// Active reports whether the objects of the instance are compared.
func (p DriftPolicy) Active() bool { return p.Mode == DriftWarn || p.Mode == DriftCorrect }

// DriftIgnore names fields that other clients may change.
type DriftIgnore struct {
	Object string `json:"object,omitempty"` // "Kind" or a workload's name, as "Kind/name"; empty: every object
	Path   string `json:"path"`             // as DriftField.Path, with "*" for any name or list item; with all fields below it
}

// Covers reports whether a field of an object is ignored.
func (i DriftIgnore) Covers(ref Ref, path string) bool {
	if kind, group, _ := strings.Cut(i.Object, "."); i.Object != "" && !ref.Names(i.Object) &&
		(!strings.EqualFold(kind, ref.Kind) || group != "" && group != ref.Group) {
		return false
	}
	pattern, keys := PathKeys(i.Path), PathKeys(path)
	if len(pattern) > len(keys) {
		return false
	}
	for n, key := range pattern {
		if key != keys[n] && key != "*" {
			return false
		}
	}
	return true
}

// PathKeys returns the keys of a path, which are separated by dots. A key in brackets
// may contain dots: "metadata.labels[example.org/zone]", "spec.containers[name=web]".
func PathKeys(path string) []string {
	var out []string
	for path != "" {
		if path[0] == '[' {
			if end := strings.Index(path, "]"); end > 0 {
				out, path = append(out, path[1:end]), strings.TrimPrefix(path[end+1:], ".")
				continue
			}
		}
		end := strings.IndexAny(path, ".[")
		if end <= 0 {
			end = len(path)
		}
		out, path = append(out, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// mostIgnored is the maximum number of ignored paths of an instance.
const mostIgnored = 64

func (p DriftPolicy) violations() Violations {
	var v Violations
	if !slices.Contains([]DriftMode{"", DriftOff, DriftWarn, DriftCorrect}, p.Mode) {
		v = append(v, Violation{Field: "drift.mode", Message: "must be off, warn or correct"})
	}
	if len(p.Ignore) > mostIgnored {
		v = append(v, Violation{Field: "drift.ignore", Message: fmt.Sprintf("has more than %d paths", mostIgnored)})
	}
	for i, ignored := range p.Ignore {
		field := fmt.Sprintf("drift.ignore[%d]", i)
		if len(PathKeys(ignored.Path)) == 0 || len(ignored.Path) > 1024 || strings.HasPrefix(ignored.Path, "/") {
			v = append(v, Violation{Field: field + ".path", Message: `must be the path of a field, such as "spec.replicas" or "spec.template.spec.containers[name=web].image"`})
		}
		if parts := strings.Split(ignored.Object, "/"); ignored.Object != "" && (len(parts) > 3 || slices.Contains(parts, "")) || len(ignored.Object) > 1024 {
			v = append(v, Violation{Field: field + ".object", Message: `must be a kind such as "Deployment", or an object such as "Deployment/router"`})
		}
	}
	return v
}

// Drift is how one object differs from the object that the service has applied.
type Drift struct {
	Ref
	Missing bool         `json:"missing,omitempty"` // the object does not exist
	Message string       `json:"message,omitempty"` // why it cannot be compared, and so not be corrected; it names no other instance
	Fields  []DriftField `json:"fields,omitempty"`
}

// Any reports whether an object has drifted, or cannot be compared.
func (d Drift) Any() bool { return d.Missing || d.Message != "" || len(d.Fields) > 0 }

// DriftField is one field that has drifted. Values of Secrets are Masked.
type DriftField struct {
	Path    string    `json:"path"`              // "spec.template.spec.containers[name=web].image"
	Applied any       `json:"applied,omitempty"` // the value that the service has applied
	Found   any       `json:"found,omitempty"`   // nil: the field is missing
	Taken   bool      `json:"taken,omitempty"`   // the values are equal, but the field belongs to another field manager
	Manager string    `json:"manager,omitempty"` // the field manager that has it now; empty: unknown, as for a field that was removed
	Via     string    `json:"via,omitempty"`     // the subresource that the manager used
	At      time.Time `json:"at,omitzero"`       // when the manager last changed one of its fields of the object
}

// Field returns the change that a correction makes.
func (f DriftField) Field() Field { return Field{Path: f.Path, Old: f.Found, New: f.Applied} }

// Correction says how often the service has recently corrected an object by itself.
type Correction struct {
	Ref
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

// The limits of corrections of one object.
const (
	MostCorrections  = 5                // then the object is contested, and stays as it is
	CorrectionMemory = time.Hour        // after this time without a correction, the count starts again
	CorrectionPause  = 10 * time.Second // before the second correction; doubled for each further one
)

// Due returns when the service may correct the object again. It returns false if the
// object is contested: another client changes it back each time.
func (c Correction) Due() (at time.Time, ok bool) {
	if c.Times >= MostCorrections {
		return time.Time{}, false
	}
	if c.Times == 0 {
		return time.Time{}, true
	}
	return c.Last.Add(CorrectionPause << (c.Times - 1)), true
}

// CorrectionOf returns the count of an object's corrections.
func CorrectionOf(all []Correction, ref Ref) Correction {
	for _, c := range all {
		if c.Key() == ref.Key() {
			return c
		}
	}
	return Correction{Ref: ref}
}

// CountCorrections returns the counts after a correction of objects. It drops those
// that no longer matter.
func CountCorrections(all []Correction, refs []Ref, at time.Time) []Correction {
	var out []Correction
	for _, c := range all {
		corrected := slices.ContainsFunc(refs, func(r Ref) bool { return r.Key() == c.Key() })
		if !corrected && (c.Times >= MostCorrections || at.Sub(c.Last) < CorrectionMemory) {
			out = append(out, c)
		}
	}
	for _, ref := range refs {
		c := CorrectionOf(all, ref)
		if at.Sub(c.Last) >= CorrectionMemory {
			c.Times = 0
		}
		out = append(out, Correction{Ref: ref, Times: c.Times + 1, Last: at})
	}
	slices.SortFunc(out, func(a, b Correction) int { return a.Compare(b.Ref) })
	return out
}

// DriftState is what is known of an instance's drift.
type DriftState string

// The states.
const (
	DriftNone      DriftState = "none"      // the objects are as applied, except for ignored fields
	Drifted        DriftState = "drifted"   // some objects differ
	DriftContested DriftState = "contested" // the service has given up correcting some objects
	DriftUnknown   DriftState = "unknown"   // the objects have not been compared since the last change, or cannot be
)

// InstanceDrift is the drift of an instance as last compared.
type InstanceDrift struct {
	State   DriftState
	Message string    // of DriftUnknown: why
	Since   time.Time // when the state was first seen
	Objects []Drift   // those that have drifted, sorted
}

// DriftCount is the number of instances in a region with a policy and a state.
type DriftCount struct {
	Region string
	Mode   DriftMode
	State  DriftState
	Number int
}

// DriftStates returns all states.
func DriftStates() []DriftState {
	return []DriftState{DriftNone, Drifted, DriftContested, DriftUnknown}
}
