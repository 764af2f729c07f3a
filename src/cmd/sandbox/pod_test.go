package main

import (
	"encoding/json"
	"testing"
)

// podState is what the tests ask about a pod of one container.
type podState struct {
	Phase    string
	Ready    bool
	Waiting  string // why the container waits
	Restarts int
}

// object is the part of a Pod with its state.
type object struct {
	Metadata struct{ Name string }
	Status   struct {
		Phase             string
		ContainerStatuses []struct {
			Ready        bool
			RestartCount int
			State        struct{ Waiting struct{ Reason string } }
		}
	}
}

func (o object) state() podState {
	s := podState{Phase: o.Status.Phase}
	for _, c := range o.Status.ContainerStatuses {
		s.Ready, s.Waiting, s.Restarts = c.Ready, c.State.Waiting.Reason, c.RestartCount
	}
	return s
}

func newPod(image, restart string) any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"generateName": "simulated-"},
		"spec": map[string]any{
			"restartPolicy": restart,
			"containers":    []any{map[string]any{"name": "main", "image": image}},
		},
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
