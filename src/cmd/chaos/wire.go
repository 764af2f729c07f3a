package main

import (
	"slices"
	"strings"
	"time"
)

// The types below are the service's responses, with the fields that are used
// here.

type operation struct {
	ID        string     `json:"operation_id"`
	Instance  string     `json:"vnf_id"`
	Network   string     `json:"network_id"` // of an operation that instances begin
	Volume    string     `json:"volume_id"`
	Namespace string     `json:"namespace"`
	Verb      string     `json:"verb"`
	State     string     `json:"state"`
	Revision  int        `json:"revision"`
	OnFailure string     `json:"on_failure"`
	Repeats   string     `json:"retry_of"`
	Undoing   bool       `json:"undoing"`
	Attempts  int        `json:"attempts"`
	Steps     []struct{} `json:"steps"`
	Failure   *failure   `json:"failure"`
	Warnings  []string   `json:"warnings"`
	Accepted  time.Time  `json:"accepted_at"`
	Finished  time.Time  `json:"finished_at"`
}

type failure struct {
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	Step    string `json:"step"`
	Message string `json:"message"`
}

func (o operation) final() bool {
	return slices.Contains([]string{"succeeded", "failed", "cancelled"}, o.State)
}

// The reasons that it branches on.
const (
	reasonNotAccepted = "not-accepted"
	reasonConfirm     = "confirm"
)

// unheeded reports whether the operation is the record of a request that was
// never accepted.
func (o operation) unheeded() bool { return o.Failure != nil && o.Failure.Reason == reasonNotAccepted }

type summary struct {
	ID        string `json:"vnf_id"`
	Region    string `json:"cloud_region_id"`
	Namespace string `json:"namespace"`
	Package   string `json:"csar_id"`
	Name      string `json:"vnf_instance_name"`
	State     string `json:"state"`
	Message   string `json:"message"`
	Revision  int    `json:"revision"`
	Running   string `json:"running_operation_id"`
	Operation string `json:"operation_id"`
}

type instance struct {
	summary

	Parameters map[string]any `json:"parameters"`
	Networks   []struct {
		Network string `json:"network"`
	} `json:"networks"`
	Volumes []struct {
		Volume string `json:"volume"`
		Claim  string `json:"claim"`
	} `json:"volumes"`
	Clusters []struct {
		Region string `json:"cloud_region_id"`
	} `json:"workload_clusters"`
	Objects []struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Status    string `json:"status"`
	} `json:"objects"`
}

// inventory returns the instance's objects as sorted kinds and names.
func (in instance) inventory() []string {
	var out []string
	for _, o := range in.Objects {
		out = append(out, o.Kind+" "+o.Name)
	}
	slices.Sort(out)
	return out
}

// shared is a network or a volume, with its holders.
type shared struct {
	Name   string `json:"name"`
	Region string `json:"cloud_region_id"`
	State  string `json:"state"`
	Users  []struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"users"`
}

// id returns the id in the API.
func (s shared) id() string { return s.Region + "." + s.Name }

// region is a cloud region.
type region struct {
	ID     string `json:"cloud_region_id"`
	Origin string `json:"origin"`
}

type revision struct {
	Number   int  `json:"number"`
	Restores int  `json:"restored_revision"`
	InForce  bool `json:"active"`
}

// object is an object in the cluster.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		UID       string            `json:"uid"`
		Labels    map[string]string `json:"labels"`
		Owners    []struct{}        `json:"ownerReferences"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	Spec struct {
		Replicas int `json:"replicas"`
		Template struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec struct {
				Containers []struct {
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

const ownerLabel = "k8splugin.io/rb-instance-id"

func (o object) owner() string { return o.Metadata.Labels[ownerLabel] }

// own reports whether the object belongs to an instance directly, and was not
// created by a controller.
func (o object) own() bool { return len(o.Metadata.Owners) == 0 }

func (o object) String() string { return o.Kind + " " + o.Metadata.Name }

// at returns the kind, namespace and name of the object.
func (o object) at() string {
	return strings.TrimSpace(o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name)
}
