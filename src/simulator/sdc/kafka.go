package sdc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	mechanism = "SCRAM-SHA-512"
	ownUser   = "sdc"
	sdcKey    = "PartitionKey"   // of SDC's messages
	clientKey = "MyPartitionKey" // of status messages
)

// startKafka starts the broker with its topics, users and ACLs.
func (s *Simulator) startKafka() (err error) {
	password := NewUUID()
	allow := func(kind kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: pattern, Operation: op, Allow: true}
	}
	s.broker, err = kfake.NewCluster(
		kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(mechanism, ownUser, password),
		kfake.SeedTopics(1, s.topic("NOTIF"), s.topic("STATUS"), s.topic("DELETE"), "ANOTHER-TOPIC"),
		kfake.User(mechanism, s.cfg.KafkaUser, s.cfg.KafkaPassword,
			allow(kmsg.ACLResourceTypeGroup, s.cfg.Group, kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationRead),
			allow(kmsg.ACLResourceTypeTopic, "SDC-DISTR", kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationRead),
			allow(kmsg.ACLResourceTypeTopic, "SDC-DISTR", kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationWrite),
		))
	if err != nil {
		return fmt.Errorf("cannot start a broker: %w", err)
	}
	s.own, err = kgo.NewClient(
		kgo.SeedBrokers(s.broker.ListenAddrs()...), kgo.SASL(scram.Auth{User: ownUser, Pass: password}.AsSha512Mechanism()),
		kgo.ConsumeTopics(s.topic("STATUS")), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		s.broker.Close()
		return fmt.Errorf("cannot connect to the broker: %w", err)
	}
	return nil
}

// topic returns the name of a topic.
func (s *Simulator) topic(kind string) string {
	return "SDC-DISTR-" + kind + "-TOPIC-" + s.cfg.Environment
}

// Brokers returns the addresses of the broker.
func (s *Simulator) Brokers() []string { return s.broker.ListenAddrs() }

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
	r := &kgo.Record{Topic: s.topic(kind), Key: []byte(sdcKey), Value: message}
	if err := s.own.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("cannot send a message to %s: %w", r.Topic, err)
	}
	return nil
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
