package clusterapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// Config configures a Registrar. Fields without a default are required.
type Config struct {
	Regions Regions
	Open    OpenParent
	Visit   Visit
	Parse   func(kubeconfig nf.Secret) (nf.Access, error) // of a kubeconfig; its errors quote nothing of it
	Outbox  Outbox
	Logger  *slog.Logger

	Period time.Duration    // between two readings of a Secret; default one hour
	Pause  time.Duration    // between two searches for Secrets to read, and the longest after a rejection; default one minute
	Clock  func() time.Time // default time.Now
}

// Regions gives access to the registered cloud regions.
type Regions interface {
	Region(ctx context.Context, id string) (nf.Region, error)
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error]
	// Register probes a region and stores it. It returns nf.Exists if the id is taken.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// UpdateRegion edits a region. It probes a new access first.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	Removal
}

// Removal removes regions, and knows what uses them.
type Removal interface {
	// RemoveRegion deregisters a region. It returns nf.Conflict while it is used.
	RemoveRegion(ctx context.Context, id string) error
	// Users yields the holders of a region.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// Reader reads objects of a region with a Cluster.
type Reader interface {
	// Lookup returns an object, or nil if it does not exist or its kind is not served.
	Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error)
}

// OpenParent returns the region that has a Cluster, with the rights of a project there.
type OpenParent func(ctx context.Context, region, project string) (Reader, error)

// Workload is a cluster that becomes a region.
type Workload interface {
	Reader
	// Apply applies objects, and makes them the owner's. It is idempotent.
	Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error)
	// Delete requests the deletion of the owner's objects. It is idempotent.
	Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error)
}

// Visit calls use with the cluster of an access, which need not be a region.
type Visit func(access nf.Access, use func(Workload) error) error

// Outbox delivers requests durably.
type Outbox interface {
	// Put stores a request for delivery. It returns nf.Exists if its queue has a
	// pending request of that number.
	Put(ctx context.Context, r outbox.Request) (outbox.Delivery, error)
	// DeadLetters returns the requests that were given up, sorted by id.
	DeadLetters(ctx context.Context) ([]outbox.Delivery, error)
	// DeadLetter returns one of them, or nf.NotFound.
	DeadLetter(ctx context.Context, id string) (outbox.Delivery, error)
	// Resend queues a dead letter for delivery, and returns its new state.
	Resend(ctx context.Context, d outbox.Delivery) (outbox.Delivery, error)
	// Discard deletes a dead letter, or returns nf.NotFound.
	Discard(ctx context.Context, id string) error
}

// Registrar registers clusters as cloud regions. It is safe for concurrent use.
type Registrar struct {
	cfg        Config
	rejections rejections

	mu   sync.Mutex
	read map[string]time.Time // when Run read the Secret of a region last
}

// New returns a registrar, or an error if a required field is missing.
func New(cfg Config) (*Registrar, error) {
	if cfg.Regions == nil || cfg.Open == nil || cfg.Visit == nil || cfg.Parse == nil || cfg.Outbox == nil {
		return nil, errors.New("cannot create a registrar: Regions, Open, Visit, Parse and Outbox are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Period <= 0 {
		cfg.Period = time.Hour
	}
	if cfg.Pause <= 0 {
		cfg.Pause = time.Minute
	}
	return &Registrar{
		cfg: cfg, read: map[string]time.Time{},
		rejections: rejections{clock: cfg.Clock, longest: cfg.Pause, wake: delay.NewSignal(), known: map[string]*rejection{}},
	}, nil
}

// Check returns nf.Exists if the id of the cluster's region is that of another region.
func (r *Registrar) Check(ctx context.Context, p nf.Parent) error {
	_, _, err := r.registered(ctx, p)
	return err
}

// registered returns the region of a cluster, if it is registered.
func (r *Registrar) registered(ctx context.Context, p nf.Parent) (region nf.Region, is bool, err error) {
	region, err = r.cfg.Regions.Region(ctx, p.Workload.Region)
	if err != nil {
		return nf.Region{}, false, nf.IgnoreNotFound(err)
	}
	if region.Parent == nil || !region.Parent.Is(p) {
		return nf.Region{}, false, nf.E(nf.Exists, "register", "cloud region "+p.Workload.Region, errors.New("another request has registered it"))
	}
	return region, true, nil
}

// Users returns what uses the region of a cluster: nothing if it is not registered.
func (r *Registrar) Users(ctx context.Context, p nf.Parent) ([]nf.Subject, error) {
	region, err := r.cfg.Regions.Region(ctx, p.Workload.Region)
	if err != nil {
		return nil, nf.IgnoreNotFound(err)
	}
	if region.Parent == nil || !region.Parent.Is(p) {
		return nil, nil
	}
	var out []nf.Subject
	for user, err := range r.cfg.Regions.Users(ctx, nf.Holding{Region: p.Workload.Region}) {
		if err != nil {
			return nil, err
		}
		out = append(out, user)
	}
	return out, nil
}

// Register makes a region of a cluster, or updates it after a change of the Secret or of
// the request. It returns nf.Unreachable while the cluster cannot be used yet: its control
// plane is not initialized, its Secret does not exist, or it does not answer. It returns
// nf.Exists as Check does. It calls held before each change, and returns its error. It is
// idempotent.
func (r *Registrar) Register(ctx context.Context, held func(context.Context) error, p nf.Parent) error {
	region, is, err := r.registered(ctx, p)
	if err != nil {
		return err
	}
	source, err := r.secret(ctx, p)
	if err != nil {
		return err
	}
	if is {
		if region, err = r.renew(ctx, held, region, renewal{p, source, false}); err != nil {
			return err
		}
		return r.handOver(ctx, held, region)
	}
	access, err := r.access(ctx, held, p, source)
	if err != nil {
		return err
	}
	if err := held(ctx); err != nil {
		return err
	}
	p.Source, p.Account = digest(source), accountOf(p)
	region, err = r.cfg.Regions.Register(ctx, nf.Region{
		ID: p.Workload.Region, Origin: nf.OriginCluster, Labels: p.Labels(), Access: access, Parent: &p,
		Description: fmt.Sprintf("Cluster %s/%s of cloud region %s", p.Workload.Namespace, p.Workload.Cluster, p.Region),
	})
	if err != nil {
		return again(err)
	}
	return r.handOver(ctx, held, region)
}

// renewal is what a region is renewed from.
type renewal struct {
	parent nf.Parent
	source nf.Secret // the kubeconfig of the Secret
	always bool      // also if nothing has changed
}

// renew updates the access of a region, if the Secret or the request is another one, or in
// any case. It also applies an account of an earlier release again; if that fails, the region
// keeps its access, and the next call tries again.
func (r *Registrar) renew(ctx context.Context, held func(context.Context) error, region nf.Region, from renewal) (nf.Region, error) {
	now, p, account := *region.Parent, from.parent, accountOf(from.parent)
	same := now.Source == digest(from.source) && now.Workload.Credentials == p.Workload.Credentials && now.Workload.Server == p.Workload.Server
	access := region.Access
	if !same || from.always || now.Account != account {
		var err error
		access, err = r.access(ctx, held, p, from.source)
		switch {
		case err == nil:
		case !same || from.always || held(ctx) != nil || ctx.Err() != nil:
			return region, err
		default:
			r.cfg.Logger.WarnContext(ctx, "failed to give the account of a cloud region the rights of this release; will retry", "region", region.ID, "error", err)
			access, account = region.Access, now.Account
		}
	}
	wanted := p
	wanted.Source, wanted.Account, wanted.Sent, wanted.Last = digest(from.source), account, now.Sent, now.Last
	if access.Equal(region.Access) && wanted == now {
		return region, nil
	}
	if err := held(ctx); err != nil {
		return region, err
	}
	changed, err := r.cfg.Regions.UpdateRegion(ctx, region.ID, func(g *nf.Region) error {
		if g.Parent == nil || !g.Parent.Is(p) {
			return nf.E(nf.NotFound, "update", "cloud region "+g.ID, nil)
		}
		g.Access, g.Parent = access, &wanted
		return nil
	})
	return changed, again(err)
}

// again returns the error of a write that another one has prevented as one after which the
// caller repeats its call. Other errors stay as they are.
func again(err error) error {
	if err == nil || nf.KindOf(err) != nf.Conflict {
		return err
	}
	return &nf.Error{Kind: nf.Unreachable, Op: "register", Subject: "cloud region", RetryAfter: time.Second, Err: err}
}

// Deregister removes the region of a cluster, and then the service account in the cluster.
// A cluster that cannot be reached keeps the account. Deregister returns nf.Conflict with
// nf.ReasonHeld while the region is in use. It does not touch a region that another
// request has registered. It calls held before each change. It is idempotent.
func (r *Registrar) Deregister(ctx context.Context, held func(context.Context) error, p nf.Parent) error {
	_, is, err := r.registered(ctx, p)
	switch {
	case nf.KindOf(err) == nf.Exists: // the account may be that of the other request
		return nil
	case err != nil:
		return err
	}
	if err := held(ctx); err != nil {
		return err
	}
	if is {
		if err := nf.IgnoreNotFound(r.cfg.Regions.RemoveRegion(ctx, p.Workload.Region)); err != nil {
			return err
		}
	}
	if err := r.removeAccount(ctx, p); err != nil {
		r.cfg.Logger.InfoContext(ctx, "service account stays in a cluster that is no cloud region any longer", "region", p.Workload.Region, "kind", nf.KindOf(err).String(), "reason", nf.ReasonOf(err))
	}
	return ctx.Err()
}

// accountOf returns the digest of the objects of the account of a region; empty if it has
// none.
func accountOf(p nf.Parent) string {
	if p.Workload.Credentials == nf.SecretCredentials {
		return ""
	}
	return digest(account)
}

func digest(secret nf.Secret) string {
	sum := sha256.Sum256(secret)
	return "sha256:" + hex.EncodeToString(sum[:])
}
