package sdc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/simulator/broker"
)

const (
	sdcKey    = "PartitionKey"   // of SDC's messages
	clientKey = "MyPartitionKey" // of status messages
)

// startKafka starts the broker with its topics, users and ACLs.
func (s *Simulator) startKafka() (err error) {
	s.broker, err = broker.Start(broker.Config{
		Secret: NewUUID(), User: s.cfg.KafkaUser, Password: s.cfg.KafkaPassword, Group: s.cfg.Group, Prefix: "SDC-DISTR",
		Topics: []string{s.topic("NOTIF"), s.topic("STATUS"), s.topic("DELETE"), "ANOTHER-TOPIC"}, Receive: []string{s.topic("STATUS")},
	})
	return err
}

// topic returns the name of a topic.
func (s *Simulator) topic(kind string) string {
	return "SDC-DISTR-" + kind + "-TOPIC-" + s.cfg.Environment
}

// Brokers returns the addresses of the broker.
func (s *Simulator) Brokers() []string { return s.broker.Addresses() }

// Distribute announces a service, and returns the id of the distribution.
func (s *Simulator) Distribute(ctx context.Context, uuid string) (string, error) {
	s.mu.Lock()
	service, ok := s.services[uuid]
	id := NewUUID()
	if ok {
		s.distributions[id] = newDistribution(service.all())
	}
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("cannot distribute service %s: it does not exist", uuid)
	}
	return id, s.announce(ctx, "NOTIF", service.notification(id))
}

// Delete removes a service, and announces that it is deleted.
func (s *Simulator) Delete(ctx context.Context, uuid string) error {
	s.mu.Lock()
	service, ok := s.services[uuid]
	delete(s.services, uuid)
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("cannot delete service %s: it does not exist", uuid)
	}
	return s.announce(ctx, "DELETE", map[string]any{
		"serviceName": service.Name, "serviceVersion": service.Version, "serviceUUID": service.UUID, "serviceInvariantUUID": service.InvariantUUID,
	})
}

// Notify sends a message as it is to the topic of notifications.
func (s *Simulator) Notify(ctx context.Context, message []byte) error {
	return s.send(ctx, "NOTIF", message)
}

func (s *Simulator) announce(ctx context.Context, kind string, document map[string]any) error {
	message, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("cannot encode a message: %w", err)
	}
	return s.send(ctx, kind, message)
}

func (s *Simulator) send(ctx context.Context, kind string, message []byte) error {
	return s.broker.Send(ctx, s.topic(kind), sdcKey, message)
}

// notification returns the message that announces a service. As SDC does, it has null
// instead of empty arrays, and fields that no consumer needs.
func (s Service) notification(id string) map[string]any {
	resources := []map[string]any{}
	for _, r := range s.Resources {
		resources = append(resources, map[string]any{
			"resourceInstanceName": r.Instance, "resourceName": r.Name, "resourceVersion": "1.0", "resoucreType": r.Type, "resourceUUID": r.UUID,
			"resourceInvariantUUID": r.InvariantUUID, "resourceCustomizationUUID": r.CustomizationUUID, "category": "Generic", "subcategory": "Abstract",
			"artifacts": announced(r.Artifacts),
		})
	}
	return map[string]any{
		"distributionID": id, "serviceName": s.Name, "serviceVersion": s.Version, "serviceUUID": s.UUID, "serviceDescription": s.Name,
		"serviceInvariantUUID": s.InvariantUUID, "workloadContext": "Production", "resources": resources, "serviceArtifacts": announced(s.Artifacts),
	}
}

func announced(artifacts []Artifact) []map[string]any {
	var out []map[string]any
	for _, a := range artifacts {
		one := map[string]any{
			"artifactName": a.Name, "artifactType": a.Type, "artifactURL": a.url, "artifactChecksum": a.checksum(), "artifactDescription": a.Name,
			"artifactTimeout": 120, "artifactUUID": a.UUID, "artifactVersion": "1", "relatedArtifacts": nil,
		}
		if a.GeneratedFrom != "" {
			one["generatedFromUUID"] = a.GeneratedFrom
		}
		out = append(out, one)
	}
	return out
}
