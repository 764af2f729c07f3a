package distribution

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	keepDone     = 24 * time.Hour // Kafka keeps notifications for less time
)

// Catalog reads SDC.
type Catalog interface {
	Downloads
	// KafkaTopics returns where SDC sends notifications.
	KafkaTopics(ctx context.Context) (sdc.KafkaTopics, error)
	// ArtifactTypes returns the types that SDC knows; none if it does not tell.
	ArtifactTypes(ctx context.Context) ([]string, error)
}

// Downloads fetches artifacts.
type Downloads interface {
	// Download passes the content of an artifact to into, which reads it to its end.
	Download(ctx context.Context, a sdc.Artifact, into func(context.Context, io.Reader) error) error
}

// Bus is a connection to Kafka.
type Bus interface {
	// Receive passes each message to handle, and commits it when handle returns nil.
	Receive(ctx context.Context, handle func(context.Context, kafka.Message) error) error
	// Send returns when the message is acknowledged.
	Send(ctx context.Context, m kafka.Message) error
	// Close ends the connection.
	Close()
}

// Definition is a definition of ONAP that a VF module becomes.
type Definition struct {
	Name        string // UUID of the module's invariant model
	Version     string // UUID of the module's customization
	Description string
	Labels      map[string]string
	Service     string // UUID of the service's version
	Model       string // UUID of the module's version
}

// Definitions stores definitions.
type Definitions interface {
	// PutDefinition makes a definition have a chart, and reports whether its content has
	// changed. If the chart is wrong, it stores nothing and returns nf.Invalid.
	PutDefinition(ctx context.Context, d Definition, chart io.Reader) (changed bool, err error)
	// MarkDeleted marks the definitions of a deleted service, and returns their number.
	MarkDeleted(ctx context.Context, service string) (int, error)
}

// Config configures a runner. KV, Catalog, Definitions, Open, Consumer, Component and
// Deletions are required.
type Config struct {
	KV          store.KV
	Catalog     Catalog
	Definitions Definitions
	Open        func(sdc.KafkaTopics) (Bus, error) // receives from Notification and Deletions
	Consumer    string                             // consumerID of status messages
	Component   string                             // componentName of the last one
	Deletions   string                             // the topic of deletions
	Pause       time.Duration                      // before the second attempt of a download, doubled after each; 1 s by default
	Clock       func() time.Time
	Logger      *slog.Logger
	Observe     func(status string) // is called for each status message that was sent
}

// Runner follows distributions. It is safe for concurrent use, except Run.
type Runner struct {
	cfg      Config
	deployer deployer
	done     store.Table[concluded]
}

// concluded is the record of a distribution whose last status message was sent.
type concluded struct {
	ID      string    `json:"id"`
	Service string    `json:"service,omitempty"`
	Status  string    `json:"status"`
	Time    time.Time `json:"time"`
}

// New returns a runner.
func New(cfg Config) (*Runner, error) {
	if cfg.KV == nil || cfg.Catalog == nil || cfg.Definitions == nil || cfg.Open == nil || cfg.Consumer == "" || cfg.Component == "" || cfg.Deletions == "" {
		return nil, errors.New("cannot create a runner of distributions: KV, Catalog, Definitions, Open, Consumer, Component and Deletions are required")
	}
	if cfg.Pause <= 0 {
		cfg.Pause = firstPause
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string) {}
	}
	return &Runner{cfg: cfg, deployer: deployer{cfg.Catalog, cfg.Definitions, cfg.Pause}, done: store.NewTable[concluded](cfg.KV, "sdc/distributions/", "distribution")}, nil
}

// Run follows distributions until the context ends. It returns nil.
func (r *Runner) Run(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; failures++ {
		handled, err := r.follow(ctx)
		if handled {
			failures = 0
		}
		r.rest(ctx, err, delay.Doubled(firstPause, longestPause, failures))
	}
	return nil
}

// rest waits before the next attempt, unless the context has ended.
func (r *Runner) rest(ctx context.Context, cause error, pause time.Duration) {
	if ctx.Err() == nil {
		r.cfg.Logger.WarnContext(ctx, "distributions of SDC paused; will retry", "error", cause, "pause_s", pause.Seconds())
		delay.For(ctx, pause, nil)
	}
}

// follow handles messages until one fails, and reports whether it has handled any.
func (r *Runner) follow(ctx context.Context) (handled bool, err error) {
	topics, err := r.cfg.Catalog.KafkaTopics(ctx)
	if err != nil {
		return false, err
	}
	types, err := r.cfg.Catalog.ArtifactTypes(ctx)
	if err != nil {
		return false, err
	}
	if len(types) > 0 && !slices.Contains(types, sdc.TypeModules) {
		r.cfg.Logger.WarnContext(ctx, "SDC has no VF modules; nothing will be deployed", "type", sdc.TypeModules)
	}
	bus, err := r.cfg.Open(topics)
	if err != nil {
		return false, err
	}
	defer bus.Close()
	r.cfg.Logger.InfoContext(ctx, "following distributions of SDC", "topic", topics.Notification)
	err = bus.Receive(ctx, func(ctx context.Context, m kafka.Message) error {
		err := r.handle(ctx, reporter{r.cfg, bus, topics.Status}, m)
		handled = handled || err == nil
		return err
	})
	return handled, err
}

// handle handles a message. A message that cannot be read is logged, because it would be
// the same when it is received again.
func (r *Runner) handle(ctx context.Context, to reporter, m kafka.Message) error {
	if m.Topic == r.cfg.Deletions {
		d, err := sdc.ParseDeletion(m.Value)
		if err != nil {
			r.cfg.Logger.WarnContext(ctx, "deletion of SDC ignored", "error", err)
			return nil
		}
		n, err := r.cfg.Definitions.MarkDeleted(ctx, d.Service)
		if err == nil {
			r.cfg.Logger.InfoContext(ctx, "service deleted in SDC; its definitions stay", "service", d.Service, "definitions", n)
		}
		return err
	}
	n, err := sdc.ParseNotification(m.Value)
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "notification of SDC ignored", "error", err)
		return nil
	}
	_, err = r.done.Get(ctx, n.Distribution)
	if nf.KindOf(err) != nf.NotFound {
		return err // it was concluded, or it is unknown whether it was
	}
	return r.distribute(ctx, to, n)
}

// conclude records that a distribution needs no more work, and deletes old records.
func (r *Runner) conclude(ctx context.Context, n sdc.Notification, status string) error {
	now := r.cfg.Clock().UTC()
	all, err := r.done.List(ctx, "")
	if err != nil {
		return err
	}
	for _, c := range all {
		if now.Sub(c.Time) > keepDone {
			if err := nf.IgnoreNotFound(r.done.Delete(ctx, c.ID)); err != nil {
				return err
			}
		}
	}
	return r.done.Put(ctx, n.Distribution, concluded{ID: n.Distribution, Service: n.Service, Status: status, Time: now})
}
