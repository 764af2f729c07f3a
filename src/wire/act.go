package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// Scale is a request to scale workloads of an instance.
type Scale struct {
	Execution

	Workloads []Scaling `json:"workloads"`
	Force     bool      `json:"force,omitempty"` // replace a number that another client has set
}

// Scaling is the number of replicas that a workload is to have.
type Scaling struct {
	Workload string `json:"workload"` // "Deployment/router"
	Replicas *int64 `json:"replicas,omitempty"`
	By       int64  `json:"by,omitempty"`   // instead of Replicas
	Path     string `json:"path,omitempty"` // of the number, if the object has no scale subresource
}

// Restart is a request to restart workloads of an instance.
type Restart struct {
	Execution

	Workloads []string `json:"workloads,omitempty"` // empty: all
}

// Machines is a request to start, stop or migrate virtual machines of an instance.
type Machines struct {
	Execution

	Workloads []string `json:"workloads"` // "VirtualMachine/firewall"
}

// Heal is a request to create missing objects of an instance again, and to replace
// pods.
type Heal struct {
	Execution

	Pods            []string `json:"pods,omitempty"` // "name" or "namespace/name"
	Force           bool     `json:"force,omitempty"`
	Drift           bool     `json:"drift,omitempty"`            // also correct objects that others have changed
	EvictionTimeout any      `json:"eviction_timeout,omitempty"` // as Execution.Timeout; default "1m"
}

// Setting is a field of an object that an action has set.
type Setting struct {
	Ref

	Path    string `json:"path"`
	Value   any    `json:"value,omitempty"`
	Package any    `json:"package_value,omitempty"`
}

// SettingOf converts a setting.
func SettingOf(s nf.Setting) Setting {
	return Setting{RefOf(s.Ref), nf.FieldPath(s.Path), nf.ValueOf(s.Value), nf.ValueOf(s.Planned)}
}
