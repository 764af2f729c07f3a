package nf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// ActRequest asks for an action on the workloads of an instance. Nothing is
// rendered, and no revision is created.
type ActRequest struct {
	Verb      Verb          // Scale, Restart, Start, Stop, Migrate or Heal
	Scale     []Scaling     // of Scale: at least one
	Workloads []string      // "Kind/name"; of Restart: none is all that can be restarted; of Start, Stop and Migrate: virtual machines, at least one
	Pods      []string      // of Heal: pods to evict, "name" or "namespace/name"
	Drift     bool          // of Heal: apply the objects again that other clients have changed
	Patience  time.Duration // of Heal: how long to wait for a disruption budget; DefaultPatience when 0
	Force     bool          // of Scale: take the number over from another client that has set it; of Heal: delete the pods
	Options
}

// Scaling is the number of replicas that a workload is to have.
type Scaling struct {
	Workload string // "Kind/name", "Kind.group/name" or "Kind/namespace/name"
	Ref      Ref    // the object; the engine finds it
	Replicas *int64 // nil: By
	By       int64  // added to the present number
	Path     string // JSON pointer to the number in the object; empty: its scale subresource
}

// Setting is a field of an object that an action has set. It takes precedence over
// the field in the package.
type Setting struct {
	Ref
	Path    string          `json:"path"`              // JSON pointer
	Scale   bool            `json:"scale,omitempty"`   // it is set through the scale subresource
	Value   json.RawMessage `json:"value,omitempty"`   // empty: the field is absent
	Was     json.RawMessage `json:"was,omitempty"`     // the field before the action; empty: absent
	Planned json.RawMessage `json:"planned,omitempty"` // the field in the plan that was active; empty: absent

	// Of a virtual machine: the verb that KubeVirt carries out, Start, Stop, Restart or
	// Migrate. Start and Stop change the field, or, for some run strategies, nothing but
	// the state of the machine. Restart and Migrate have no field.
	Machine Verb   `json:"machine,omitempty"`
	Guest   string `json:"guest,omitempty"` // of Restart and Migrate: uid of the running VirtualMachineInstance
	Last    string `json:"last,omitempty"`  // of Migrate: uids of its latest VirtualMachineInstanceMigrations, with spaces between them; empty: none
}

// Reversed returns the setting that undoes it. A Restart or a Migrate of a virtual
// machine has none.
func (s Setting) Reversed() (reverse Setting, ok bool) {
	s.Value, s.Was = s.Was, s.Value
	switch s.Machine {
	case Start:
		s.Machine = Stop
	case Stop:
		s.Machine = Start
	case Restart, Migrate:
		return s, false
	default:
	}
	return s, true
}

// Field returns the change of the field.
func (s Setting) Field() Field {
	return Field{Path: FieldPath(s.Path), Old: ValueOf(s.Was), New: ValueOf(s.Value)}
}

// MergeSettings returns settings after others were made. A setting whose field is
// as in the plan has no effect, and is left out.
func MergeSettings(settings, made []Setting) []Setting {
	out := slices.Clone(settings)
	for _, s := range made {
		out = slices.DeleteFunc(out, func(o Setting) bool { return o.Key() == s.Key() && o.Path == s.Path })
		if !bytes.Equal(s.Value, s.Planned) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return cmp.Or(a.Compare(b.Ref), strings.Compare(a.Path, b.Path)) })
	return out
}

// RestartPath is the field of a workload that a restart sets: an annotation of its
// pods.
const RestartPath = "/spec/template/metadata/annotations/" + "k8splugin.io~1restarted-at"

// MaxReplicas is the largest number of replicas that a workload can have.
const MaxReplicas = math.MaxInt32

// RestartValue returns the value of RestartPath for a restart at a time.
func RestartValue(at time.Time) json.RawMessage {
	return json.RawMessage(`"` + at.UTC().Format(time.RFC3339Nano) + `"`)
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
func (r ActRequest) Validate() error {
	v := append(r.Options.violations(), checkPods(r.Pods)...)
	if r.Patience < 0 || r.Patience > MaxTimeout {
		v = append(v, Violation{Field: "eviction_timeout", Message: "must be between 0 and 24h"})
	}
	seen := map[string]bool{}
	for i, s := range r.Scale {
		field := fmt.Sprintf("workloads[%d]", i)
		v = append(v, checkWorkload(field+".workload", s.Workload, seen)...)
		switch {
		case (s.Replicas == nil) == (s.By == 0):
			v = append(v, Violation{Field: field + ".replicas", Message: "give either replicas or by, and not 0 for by"})
		case s.Replicas != nil && (*s.Replicas < 0 || *s.Replicas > MaxReplicas):
			v = append(v, Violation{Field: field + ".replicas", Message: fmt.Sprintf("must be between 0 and %d", MaxReplicas)})
		case s.By < -MaxReplicas || s.By > MaxReplicas:
			v = append(v, Violation{Field: field + ".by", Message: fmt.Sprintf("must be between -%d and %d", MaxReplicas, MaxReplicas)})
		}
		if s.Path != "" && (s.Path[0] != '/' || strings.HasPrefix(s.Path+"/", "/metadata/") || strings.HasPrefix(s.Path+"/", "/status/") || len(s.Path) > 1024) {
			v = append(v, Violation{Field: field + ".path", Message: `must be a JSON pointer such as "/spec/replicas", not into metadata or status`})
		}
	}
	if r.Verb == Scale && len(r.Scale) == 0 || isOfMachines(r.Verb) && len(r.Workloads) == 0 {
		v = append(v, Violation{Field: "workloads", Message: "is missing"})
	}
	for i, w := range r.Workloads {
		v = append(v, checkWorkload(fmt.Sprintf("workloads[%d]", i), w, seen)...)
	}
	return invalid(string(r.Verb), "workloads", v)
}

// isOfMachines reports whether only virtual machines have the verb.
func isOfMachines(verb Verb) bool { return verb == Start || verb == Stop || verb == Migrate }

func checkWorkload(field, workload string, seen map[string]bool) Violations {
	again := seen[workload]
	seen[workload] = true
	switch parts := strings.Split(workload, "/"); {
	case len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, ""):
		return Violations{{Field: field, Message: `must be "Kind/name", such as "Deployment/router"; "Kind.group/name" and "Kind/namespace/name" if that is ambiguous`}}
	case again:
		return Violations{{Field: field, Message: fmt.Sprintf("%q is given twice", workload)}}
	}
	return nil
}

// Names reports whether a workload of a request names the object.
func (r Ref) Names(workload string) bool {
	kind, name, _ := strings.Cut(workload, "/")
	namespace, rest, found := strings.Cut(name, "/")
	if found {
		name = rest
	}
	kind, group, grouped := strings.Cut(kind, ".")
	return strings.EqualFold(kind, r.Kind) && name == r.Name && (!grouped || group == r.Group) && (!found || namespace == r.Namespace)
}
