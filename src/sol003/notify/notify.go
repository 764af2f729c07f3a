package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// Source has notices.
type Source interface {
	// NoticesFrom yields the notices, sorted by id.
	NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error]
	// DropNotice deletes a notice. It need not exist.
	DropNotice(ctx context.Context, id string) error
	// Noticed receives a value when this replica may have written a notice.
	Noticed() <-chan struct{}
}

// Config configures a Notifier. The Prefix, the Noun and the Send of the outbox are set by New.
type Config struct {
	outbox.Config

	// Sources are the sources of notices, by a name that stays the same.
	Sources map[string]Source

	// Endpoint begins the links in notifications, such as "https://vnfm.example:9015".
	// Default: links are paths.
	Endpoint string

	// SkipTest accepts callbacks without testing them.
	SkipTest bool

	// TLS returns how callbacks are verified, and the certificate of the service, which it
	// presents to the callbacks that are to get it. Default: CAs of the system.
	TLS func(context.Context) *tls.Config

	// Certified says that TLS has a certificate.
	Certified bool

	// Via sends the requests. It must connect to allowed hosts only. Default: HTTP.
	Via http.RoundTripper

	// Status returns the HTTP status of a kind of failure. Default: 500.
	Status func(nf.Kind) int
}

// Notifier stores subscriptions and serves them. It is safe for concurrent use.
type Notifier struct {
	cfg           Config
	subscriptions store.Table[nf.VNFSubscription]
	positions     store.Table[position]
	outbox        *outbox.Outbox
	group         *leader.Group
	sender        *sender
}

// prefix begins the keys of all records.
const prefix = "vnfnotifications/"

// New returns a notifier. It sends nothing before Run is called, except tests of callbacks.
func New(cfg Config) (*Notifier, error) {
	cfg.Prefix, cfg.Noun = prefix, "notification"
	if cfg.Status == nil {
		cfg.Status = func(nf.Kind) int { return http.StatusInternalServerError }
	}
	n := &Notifier{
		subscriptions: store.NewTable[nf.VNFSubscription](cfg.KV, prefix+"subscriptions/", "subscription"),
		positions:     store.NewTable[position](cfg.KV, prefix+"positions/", "position in notices"),
	}
	n.sender = newSender(cfg, n.subscriptions.Get)
	cfg.Send = n.sender.send
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	if len(cfg.Sources) == 0 {
		return nil, errors.New("cannot create a notifier: Sources are required")
	}
	n.cfg = cfg
	var err error
	if n.outbox, err = outbox.New(cfg.Config, nil); err != nil {
		return nil, err
	}
	n.group, err = leader.New(leader.Config{
		KV: cfg.KV, Prefix: prefix + "distribution/", Work: "distribution of notices", NewID: cfg.NewID, Clock: cfg.Clock,
		Logger: cfg.Logger, Lease: cfg.Lease, Sole: cfg.Sole,
	})
	return n, err
}

// Run distributes notices if this replica is chosen for it, and delivers its share of
// notifications, until the context ends. It must be called only once.
func (n *Notifier) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return n.outbox.Run(ctx) })
	running.Go(func() error { return n.group.Run(ctx, n.distribute) })
	return running.Wait() //nolint:wrapcheck // neither of the two returns an error
}

// Targets returns the number of recent targets of this replica, by the state of
// their circuit breaker.
func (n *Notifier) Targets() map[nf.BreakerState]int { return n.outbox.Targets() }

func (n *Notifier) now() time.Time { return n.cfg.Clock().UTC() }
