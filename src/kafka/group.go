package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// member is a member of a group.
type member struct {
	of     *kgo.Client
	failed groupErrors
}

// groupErrors receives the last error of the group.
type groupErrors chan error

// OnGroupManageError implements kgo.HookGroupManageError.
func (e groupErrors) OnGroupManageError(err error) {
	select {
	case e <- err:
	default: // an earlier one was not read yet
	}
}

// join returns a new member of the group.
func (c Config) join() (*member, error) {
	opts, err := c.options()
	if err != nil {
		return nil, nf.E(nf.Invalid, "join", "the group of Kafka", err)
	}
	if c.Session <= 0 {
		c.Session = sessionTime
	}
	failed := make(groupErrors, 1)
	opts = append(opts, kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(c.Session), kgo.RebalanceTimeout(rebalanceTime), kgo.WithHooks(failed))
	if c.Member != "" {
		opts = append(opts, kgo.InstanceID(c.Member))
	}
	m, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nf.E(nf.Invalid, "join", "the group of Kafka", err)
	}
	return &member{m, failed}, nil
}

// begin commits the ends of the topics in which the group has no position. Without it, a
// message that arrives while no member runs, or that the first member does not handle
// before it crashes, would be skipped. Kafka accepts it while the group has no members;
// if it has, they have begun.
func (c *Client) begin(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	const op, subject = "read", "the positions of the group of Kafka"
	admin := kadm.NewClient(c.of)
	committed, err := admin.FetchOffsets(limited, c.cfg.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fail(op, subject, err)
	}
	ends, err := admin.ListEndOffsets(limited, c.cfg.Topics...)
	if err != nil {
		return fail(op, subject, err)
	}
	missing := make(kadm.Offsets)
	ends.Each(func(end kadm.ListedOffset) {
		if _, found := committed.Lookup(end.Topic, end.Partition); !found && end.Err == nil { // a topic may not exist yet
			missing.Add(kadm.Offset{Topic: end.Topic, Partition: end.Partition, At: end.Offset, LeaderEpoch: end.LeaderEpoch})
		}
	})
	if len(missing) == 0 {
		return nil
	}
	done, err := admin.CommitOffsets(limited, c.cfg.Group, missing)
	if err == nil {
		err = done.Error()
	}
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) && !errors.Is(err, kerr.RebalanceInProgress) {
		return fail("commit", subject, err)
	}
	return nil
}

// Receive passes each message of the topics to handle, in the order of its partition,
// and commits it when handle has returned nil. It returns when the context ends, with
// the error of handle, or with an error of Kafka, after which the caller may call it
// again on a new Client. A group that has no position in a topic begins at its end.
func (c *Client) Receive(ctx context.Context, handle func(context.Context, Message) error) error {
	err := c.ping(ctx)
	if err == nil && ctx.Err() == nil {
		err = c.begin(ctx)
	}
	if ctx.Err() != nil {
		return nil // a request that the end has interrupted has not failed
	}
	if err != nil {
		return err
	}
	m, err := c.cfg.join()
	if err != nil {
		return err
	}
	defer m.of.Close() // leaves the group, unless the member has a name in it
	return m.receive(ctx, handle)
}

// receive is Receive of a member.
func (m *member) receive(ctx context.Context, handle func(context.Context, Message) error) error {
	for {
		fetches, err := m.poll(ctx)
		if err != nil || ctx.Err() != nil || fetches.IsClientClosed() {
			return err
		}
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, kerr.UnknownTopicOrPartition) { // a topic may not exist yet
				return fail("receive", "messages of "+failed.Topic, failed.Err)
			}
		}
		for _, r := range fetches.Records() {
			if err := handle(ctx, Message{r.Topic, r.Key, r.Value}); err != nil {
				return err
			}
			if err := m.commit(ctx, r); err != nil {
				return err
			}
		}
	}
}

// poll returns the next messages; none after a while, so that errors of the group are
// noticed.
func (m *member) poll(ctx context.Context) (kgo.Fetches, error) {
	limited, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	fetches := m.of.PollFetches(limited)
	select {
	case err := <-m.failed:
		return nil, fail("use", "the group of Kafka", err)
	default:
	}
	if limited.Err() != nil && fetches.NumRecords() == 0 {
		return nil, nil
	}
	return fetches, nil
}

// commit commits a message, even if the context has ended: it was handled.
func (m *member) commit(ctx context.Context, r *kgo.Record) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	if err := m.of.CommitRecords(limited, r); err != nil {
		return fail("commit", "a message of "+r.Topic, err)
	}
	return nil
}
