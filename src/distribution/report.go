package distribution

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
)

const statusKey = "MyPartitionKey" // the key that SDC's own client uses

// reporter sends status messages.
type reporter struct {
	cfg   Config
	bus   Bus
	topic string
}

// status is a status message.
type status struct {
	Distribution string `json:"distributionID"`
	Consumer     string `json:"consumerID"`
	Timestamp    int64  `json:"timestamp"` // in milliseconds
	Artifact     string `json:"artifactURL"`
	Status       string `json:"status"`
	Reason       string `json:"errorReason,omitempty"`
	Component    string `json:"componentName,omitempty"`
}

// artifact reports the status of an artifact. Err is the reason of an error.
func (r reporter) artifact(ctx context.Context, n sdc.Notification, a sdc.Artifact, is string, err error) error {
	return r.send(ctx, status{Distribution: n.Distribution, Artifact: a.URL, Status: is, Reason: reasonOf(err)})
}

// component reports the end of a distribution, and returns its status.
func (r reporter) component(ctx context.Context, n sdc.Notification, failed error) (string, error) {
	is := "COMPONENT_DONE_OK"
	if failed != nil {
		is = "COMPONENT_DONE_ERROR"
	}
	return is, r.send(ctx, status{Distribution: n.Distribution, Status: is, Reason: reasonOf(failed), Component: r.cfg.Component})
}

func (r reporter) send(ctx context.Context, s status) error {
	s.Consumer, s.Timestamp = r.cfg.Consumer, r.cfg.Clock().UnixMilli()
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode a status message: %w", err)
	}
	if err := r.bus.Send(ctx, kafka.Message{Topic: r.topic, Key: []byte(statusKey), Value: value}); err != nil {
		return err
	}
	r.cfg.Observe(s.Status)
	return nil
}

// reasonOf returns the text of an error, of at most 1000 characters.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%.1000s", err)
}
