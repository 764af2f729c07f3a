package sdc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/simulator/broker"
)

// Status is a status message of a consumer.
type Status struct {
	DistributionID string `json:"distributionID"`
	ConsumerID     string `json:"consumerID"`
	Timestamp      int64  `json:"timestamp"` // in milliseconds
	ArtifactURL    string `json:"artifactURL"`
	Status         string `json:"status"`
	ErrorReason    string `json:"errorReason,omitempty"`
	ComponentName  string `json:"componentName,omitempty"`
}

// distribution is the state of one distribution, as status messages report it.
type distribution struct {
	stages   map[string]stage // by the URL of the artifact
	statuses []Status
	failed   bool // an artifact has failed
	done     bool
	again    int // how often the component may begin again
}

// stage is how far an artifact is.
type stage int

const (
	announcedStage stage = iota
	unwantedStage
	notifiedStage
	downloadedStage
	finishedStage // deployed, or failed
)

func newDistribution(artifacts []Artifact) *distribution {
	d := &distribution{stages: map[string]stage{}}
	for _, a := range artifacts {
		d.stages[a.url] = announcedStage
	}
	return d
}

// Run reads the status messages until the context ends.
func (s *Simulator) Run(ctx context.Context) error {
	s.broker.Run(ctx, func(r broker.Message) { s.receive(ctx, r) })
	return nil
}

// receive checks and records a status message.
func (s *Simulator) receive(ctx context.Context, r broker.Message) {
	var m Status
	d := json.NewDecoder(bytes.NewReader(r.Value))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil || r.Key != clientKey || m.ConsumerID != s.cfg.Consumer || m.Timestamp <= 0 {
		s.violate("the status message %q with the key %q is malformed", r.Value, r.Key)
		return
	}
	if m.Status == "DEPLOY_OK" || m.Status == "ALREADY_DEPLOYED" {
		if err := s.cfg.Deployed(ctx, m.ArtifactURL); err != nil {
			s.violate("%s of %s is wrong: %v", m.Status, m.ArtifactURL, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, ok := s.distributions[m.DistributionID]
	if !ok {
		s.violate("%s is of the unknown distribution %q", m.Status, m.DistributionID)
		return
	}
	of.statuses = append(of.statuses, m)
	if err := of.take(m); err != nil {
		s.violate("%s of %q: %v", m.Status, m.ArtifactURL, err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Restarted tells the simulator that the component was killed and starts again. It gets
// the last notifications again if it had not committed them, and may then report each of
// them once from the beginning. What it sent before may be read after this call.
func (s *Simulator) Restarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.distributions {
		d.again++
	}
}

// restart resets the state of a distribution that is reported from the beginning.
func (d *distribution) restart() {
	for artifact := range d.stages {
		d.stages[artifact] = announcedStage
	}
	d.failed, d.done = false, false
	d.again--
}

// take advances a distribution, or returns what is wrong with a message.
func (d *distribution) take(m Status) error {
	if first := steps[m.Status].from == announcedStage && m.ArtifactURL != ""; first && d.again > 0 && (d.done || d.stages[m.ArtifactURL] != announcedStage) {
		d.restart()
	}
	if d.done {
		return fmt.Errorf("the component is done with this distribution")
	}
	if strings.HasPrefix(m.Status, "COMPONENT_DONE_") {
		return d.finish(m)
	}
	at, known := d.stages[m.ArtifactURL]
	if !known {
		return fmt.Errorf("the notification has no such artifact")
	}
	if (m.ErrorReason != "") != strings.HasSuffix(m.Status, "_ERROR") {
		return fmt.Errorf("an error has a reason, and nothing else has one")
	}
	step, ok := steps[m.Status]
	switch {
	case !ok:
		return fmt.Errorf("it is not a status of this component")
	case at != step.from:
		return fmt.Errorf("it does not follow the status before it")
	case step.from != announcedStage && d.some(announcedStage):
		return fmt.Errorf("not every artifact is NOTIFIED or NOT_NOTIFIED")
	}
	d.stages[m.ArtifactURL] = step.to
	d.failed = d.failed || m.ErrorReason != ""
	return nil
}

var steps = map[string]struct{ from, to stage }{
	"NOTIFIED":           {announcedStage, notifiedStage},
	"NOT_NOTIFIED":       {announcedStage, unwantedStage},
	"DOWNLOAD_OK":        {notifiedStage, downloadedStage},
	"ALREADY_DOWNLOADED": {notifiedStage, downloadedStage},
	"DOWNLOAD_ERROR":     {notifiedStage, finishedStage},
	"DEPLOY_OK":          {downloadedStage, finishedStage},
	"ALREADY_DEPLOYED":   {downloadedStage, finishedStage},
	"DEPLOY_ERROR":       {downloadedStage, finishedStage},
}

// finish takes the last message of a distribution.
func (d *distribution) finish(m Status) error {
	d.done = true
	switch {
	case m.Status != "COMPONENT_DONE_OK" && m.Status != "COMPONENT_DONE_ERROR":
		return fmt.Errorf("it is not a status")
	case m.ArtifactURL != "" || m.ComponentName == "":
		return fmt.Errorf("it must have a component, and no artifact")
	case d.some(announcedStage) || d.some(downloadedStage):
		return fmt.Errorf("an artifact is not NOTIFIED, or not deployed")
	case (m.Status == "COMPONENT_DONE_OK") != (m.ErrorReason == ""):
		return fmt.Errorf("an error has a reason, and nothing else has one")
	case m.Status == "COMPONENT_DONE_OK" && d.failed:
		return fmt.Errorf("an artifact has failed")
	}
	return nil
}

func (d *distribution) some(at stage) bool {
	for _, is := range d.stages {
		if is == at {
			return true
		}
	}
	return false
}

// Await returns the status messages of a distribution once its component is done.
func (s *Simulator) Await(ctx context.Context, id string) ([]Status, error) {
	for {
		s.mu.Lock()
		d, changed := s.distributions[id], s.changed
		if d == nil || d.done {
			var out []Status
			if d != nil {
				out = slices.Clone(d.statuses)
			}
			s.mu.Unlock()
			return out, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot await distribution %s: %w", id, ctx.Err())
		case <-changed:
		}
	}
}
