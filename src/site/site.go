package site

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures Sites. The fields of the first group are required.
type Config struct {
	KV        store.KV
	Regions   Regions
	Instances Instances
	ProbeHost HostProbe
	Runners   map[nf.SiteDriver]Runner
	Workers   *operation.Workers // run the operations; New registers the kind of sites
	NewID     func() string      // returns short ids, never the same one twice

	Clouds    Clouds                     // make machines; default: none, and sites with machines are rejected
	Holds     Holds                      // of the regions of clouds; required with Clouds
	Owners    Owners                     // of instances; default: none
	Usable    func(nf.SiteSecrets) error // checks a credential without using it; default: accepts all
	Clock     func() time.Time           // default time.Now
	Parallel  int                        // operations that run at once; default 4
	Timeout   time.Duration              // of an operation whose request sets none; default 2 h
	Retention time.Duration              // how long ended operations are kept; default 30 days
}

func (c *Config) complete() error {
	if c.KV == nil || c.Regions == nil || c.Instances == nil || c.ProbeHost == nil || c.Workers == nil || c.NewID == nil || len(c.Runners) == 0 {
		return errors.New("cannot create the site manager: KV, Regions, Instances, ProbeHost, Workers, NewID and Runners are required")
	}
	if c.Clouds != nil && c.Holds == nil {
		return errors.New("cannot create the site manager: Holds is required with Clouds")
	}
	if c.Usable == nil {
		c.Usable = func(nf.SiteSecrets) error { return nil }
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 2 * time.Hour}, {&c.Retention, 30 * 24 * time.Hour}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return nil
}

// Sites stores sites and accepts operations on them. It is safe for concurrent
// use.
type Sites struct {
	cfg Config

	sites    store.Table[nf.Site]
	locks    operation.Locks[nf.Site]
	secrets  store.Table[secretsRecord]
	ledger   *operation.Ledger
	acceptor *operation.Acceptor
}

// New returns the sites of a store. The workers run their operations.
func New(cfg Config) (*Sites, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	sites := store.NewTable[nf.Site](cfg.KV, "sites/", "site")
	s := &Sites{
		cfg:     cfg,
		sites:   sites,
		locks:   operation.Locks[nf.Site]{Subjects: sites, Of: lockOf},
		secrets: store.NewTable[secretsRecord](cfg.KV, "sitesecrets/", "secrets of site"),
		ledger:  cfg.Workers.Ledger(),
	}
	s.acceptor = cfg.Workers.Register(operation.Kind{
		Name: nf.SiteSubject, Places: cfg.Parallel, Timeout: cfg.Timeout, Perform: s.ledger.Performer(true, s.work),
		Names: s.locks.Names, Withdraw: s.withdraw,
		Sweep: func() operation.Sweep { return &sweep{s, map[string]bool{}, map[string]bool{}} }, Retention: cfg.Retention,
	})
	return s, nil
}

// lockOf returns the lock of a site.
func lockOf(in *nf.Site) operation.Lock {
	return operation.Lock{Subject: subjectOf(in.ID), Operation: &in.Busy, Claim: &in.Claim, Last: &in.Last, Updated: &in.Updated}
}

// subjectOf returns a site as the subject of operations; without an id, all sites.
func subjectOf(id string) nf.Subject { return nf.Subject{Kind: nf.SiteSubject, ID: id} }

func (s *Sites) now() time.Time { return s.cfg.Clock().UTC() }

// secretsRecord holds a site's secrets, as one operation has set them.
type secretsRecord struct {
	nf.SiteSecrets

	ID string `json:"id"`
}

// loadSecrets returns the secrets of a site. They are empty if the store applied
// the site's record late, after its request was withdrawn.
func (s *Sites) loadSecrets(ctx context.Context, in nf.Site) (nf.SiteSecrets, error) {
	present, err := s.secrets.Get(ctx, in.SecretsRecord)
	if in.Untouched {
		err = nf.IgnoreNotFound(err)
	}
	return present.SiteSecrets, err
}

// under returns the key of a record that one operation of a site has. The
// owner is the id or the UID of the site.
func under(owner, operation string) string { return owner + "/" + operation }
