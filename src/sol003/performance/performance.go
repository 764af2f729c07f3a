package performance

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// Source provides VNFs and how much of their resources they use.
type Source interface {
	// VNF returns a VNF, whose instance has the same id, or nf.NotFound.
	VNF(ctx context.Context, id string) (nf.VNF, error)
	// Usage returns the usage of the pods of an instance, or nf.Unsupported if its region
	// does not measure them.
	Usage(ctx context.Context, id string) ([]nf.PodUsage, error)
}

// Callbacks stores the callbacks of jobs and thresholds, as subscriptions.
type Callbacks interface {
	// CallbackOp checks and tests a callback, and returns the op that stores it under its
	// id. It returns nf.Invalid, and nf.Failed if the callback does not pass its test.
	CallbackOp(ctx context.Context, s nf.VNFSubscription) (store.Op, error)
	// Subscription returns a callback, or nf.NotFound.
	Subscription(ctx context.Context, id string) (nf.VNFSubscription, error)
	// SubscriptionsFrom yields the callbacks and the other subscriptions, sorted by id.
	SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error]
	// Unsubscribe deletes a callback, or returns nf.NotFound.
	Unsubscribe(ctx context.Context, id string) error
}

// Config configures a Meter. KV, Source, Callbacks and NewID are required.
type Config struct {
	KV        store.KV
	Source    Source
	Callbacks Callbacks
	NewID     func() string // returns a short unique id

	Clock  func() time.Time
	Logger *slog.Logger
	Lease  time.Duration // see leader.Config, and so is Sole
	Sole   bool
}

// Limits. Those of a project hold for its jobs, and for its thresholds.
const (
	MaxObjects = 50   // VNFs of a job, or components
	MaxTargets = 100  // jobs, or thresholds, of a project
	MaxReports = 50   // kept of a job
	maxEntries = 1000 // values of a report; others are left out

	MinPeriod = 5 * time.Second
	MaxPeriod = 24 * time.Hour

	// ThresholdPeriod is the time between measurements for a threshold.
	ThresholdPeriod = 30 * time.Second
)

const (
	prefix     = "vnfperformance/"
	usageTime  = 10 * time.Second // to read the usage of a VNF
	parallel   = 8                // VNFs that are read at once
	longest    = 15 * time.Second // until jobs of other replicas are looked for
	sweepEvery = time.Hour
)

// Meter measures VNFs. It is safe for concurrent use.
type Meter struct {
	cfg        Config
	jobs       store.Table[nf.PMJob]
	periods    store.Table[period]      // by job
	reports    store.Table[nf.PMReport] // by job and id
	thresholds store.Table[nf.PMThreshold]
	notices    store.Table[nf.Notice]
	noticed    delay.Signal
	changed    delay.Signal // a job or a threshold was created
	group      *leader.Group
}

// New returns a meter. It measures nothing before Run, except to check new jobs.
func New(cfg Config) (*Meter, error) {
	if cfg.KV == nil || cfg.Source == nil || cfg.Callbacks == nil || cfg.NewID == nil {
		return nil, errors.New("cannot create a meter of VNFs: KV, Source, Callbacks and NewID are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	m := &Meter{
		cfg:        cfg,
		jobs:       store.NewTable[nf.PMJob](cfg.KV, prefix+"jobs/", "PM job"),
		periods:    store.NewTable[period](cfg.KV, prefix+"periods/", "period of a PM job"),
		reports:    store.NewTable[nf.PMReport](cfg.KV, prefix+"reports/", "PM report"),
		thresholds: store.NewTable[nf.PMThreshold](cfg.KV, prefix+"thresholds/", "threshold"),
		notices:    store.NewTable[nf.Notice](cfg.KV, prefix+"notices/", "notice"),
		noticed:    delay.NewSignal(), changed: delay.NewSignal(),
	}
	var err error
	m.group, err = leader.New(leader.Config{
		KV: cfg.KV, Prefix: prefix + "watch/", Work: "measure VNFs", NewID: cfg.NewID, Clock: cfg.Clock, Logger: cfg.Logger, Lease: cfg.Lease, Sole: cfg.Sole,
	})
	return m, err
}

// Run measures if this replica is chosen for it, until the context ends. It must be
// called only once.
func (m *Meter) Run(ctx context.Context) error { return m.group.Run(ctx, m.measure) }

func (m *Meter) now() time.Time { return m.cfg.Clock().UTC() }

// NoticesFrom yields the notices, sorted by id.
func (m *Meter) NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error] {
	return m.notices.From(ctx, "", from.After)
}

// DropNotice deletes a notice. It need not exist.
func (m *Meter) DropNotice(ctx context.Context, id string) error {
	return nf.IgnoreNotFound(m.notices.Delete(ctx, id))
}

// Noticed receives a value when this replica may have written a notice.
func (m *Meter) Noticed() <-chan struct{} { return m.noticed }
