package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	mechanism = "SCRAM-SHA-512"
	owner     = "simulator" // the user that may do everything
)

// Config describes a broker. All fields but Receive are required.
type Config struct {
	Secret   string   // password of the simulator's own user
	User     string   // of clients
	Password string   // of User
	Group    string   // the only group that User may consume in
	Prefix   string   // of the topics that User may read and write
	Topics   []string // exist
	Receive  []string // topics whose messages Run passes on
}

// Broker is a Kafka broker. It is safe for concurrent use.
type Broker struct {
	cluster *kfake.Cluster
	own     *kgo.Client
}

// Start starts a broker. The caller must close it.
func Start(cfg Config) (*Broker, error) {
	allow := func(kind kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: pattern, Operation: op, Allow: true}
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(mechanism, owner, cfg.Secret), kfake.SeedTopics(1, cfg.Topics...),
		kfake.User(mechanism, cfg.User, cfg.Password,
			allow(kmsg.ACLResourceTypeGroup, cfg.Group, kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationRead),
			allow(kmsg.ACLResourceTypeTopic, cfg.Prefix, kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationRead),
			allow(kmsg.ACLResourceTypeTopic, cfg.Prefix, kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationWrite),
		))
	if err != nil {
		return nil, fmt.Errorf("cannot start a broker: %w", err)
	}
	own, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(scram.Auth{User: owner, Pass: cfg.Secret}.AsSha512Mechanism()),
		kgo.ConsumeTopics(cfg.Receive...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		cluster.Close()
		return nil, fmt.Errorf("cannot connect to the broker: %w", err)
	}
	return &Broker{cluster, own}, nil
}

// Close ends the broker.
func (b *Broker) Close() {
	b.own.Close()
	b.cluster.Close()
}

// Addresses returns the host:port of the broker.
func (b *Broker) Addresses() []string { return b.cluster.ListenAddrs() }

// Send sends a message, and returns when it is stored.
func (b *Broker) Send(ctx context.Context, topic, key string, message []byte) error {
	r := &kgo.Record{Topic: topic, Key: []byte(key), Value: message}
	if err := b.own.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("cannot send a message to %s: %w", topic, err)
	}
	return nil
}

// Message is a message that was received.
type Message struct {
	Topic string
	Key   string
	Value []byte
}

// Run passes the messages of the topics that are received to handle, until the context
// or the broker ends.
func (b *Broker) Run(ctx context.Context, handle func(Message)) {
	for {
		fetches := b.own.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(r *kgo.Record) { handle(Message{r.Topic, string(r.Key), r.Value}) })
	}
}
