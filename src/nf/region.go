package nf

import (
	"log/slog"
	"slices"
	"time"
)

// Region is one cloud region: a Kubernetes cluster that we hold the kubeconfig
// of. Owner and ID together are A&AI's key of a cloud region; here the ID alone
// is unique.
type Region struct {
	ID          string            `json:"id"`
	Owner       string            `json:"owner"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Kubeconfig  Secret            `json:"kubeconfig"`
	Probe       Probe             `json:"probe"`           // what the last successful probe saw
	Users       []string          `json:"users,omitempty"` // ids of the instances that hold the region, sorted
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// LogValue logs the id alone: the stored form that a JSON log would show holds
// the kubeconfig.
func (r Region) LogValue() slog.Value { return slog.StringValue(r.ID) }

// Probe is what a region's API server said of itself.
type Probe struct {
	Server  string    `json:"server"`  // URL of the API server
	Version string    `json:"version"` // "v1.37.1"
	APIs    []string  `json:"apis"`    // group/versions that it serves, sorted: "apps/v1"
	Time    time.Time `json:"time"`
}

// Hold adds a user to a sorted set of users. Holding twice is holding once.
func Hold(users []string, user string) []string {
	if i, found := slices.BinarySearch(users, user); !found {
		return slices.Insert(slices.Clone(users), i, user)
	}
	return users
}

// Release takes a user out of a sorted set of users.
func Release(users []string, user string) []string {
	if i, found := slices.BinarySearch(users, user); found {
		return slices.Delete(slices.Clone(users), i, i+1)
	}
	return users
}
