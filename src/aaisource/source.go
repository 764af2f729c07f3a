package aaisource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	instancePrefix = "instances/" // of the ids of subjects
	networkPrefix  = "networks/"
	regionPrefix   = "regions/"
)

// InstanceID returns the id of the subject of an instance.
func InstanceID(instance string) string { return instancePrefix + instance }

// NetworkID returns the id of the subject of a network.
func NetworkID(network string) string { return networkPrefix + network }

// RegionID returns the id of the subject of a cloud region.
func RegionID(region string) string { return regionPrefix + region }

// SubjectOf returns the instance, the network or the cloud region of a subject's id.
func SubjectOf(id string) nf.Subject {
	if region, ok := strings.CutPrefix(id, regionPrefix); ok {
		return nf.Subject{Kind: nf.RegionSubject, ID: region}
	}
	if network, ok := strings.CutPrefix(id, networkPrefix); ok {
		return nf.Subject{Kind: nf.NetworkSubject, ID: network}
	}
	return nf.Subject{Kind: nf.InstanceSubject, ID: strings.TrimPrefix(id, instancePrefix)}
}

// Instances has the service's instances and their regions.
type Instances interface {
	Instances(ctx context.Context) ([]nf.Instance, error)
	Instance(ctx context.Context, id string) (nf.Instance, error)
	Region(ctx context.Context, id string) (nf.Region, error)
	Regions(ctx context.Context) ([]nf.Region, error)
}

// Networks has the service's networks.
type Networks interface {
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error]
	Get(ctx context.Context, id string) (nf.Network, error)
	Layout(n nf.Network) (nf.Layout, error)
}

// Regions reads what cloud regions have.
type Regions interface {
	// Objects returns those objects of an instance that exist.
	Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error)
	Pods(ctx context.Context, instance string) ([]nf.Pod, error)

	// Capabilities returns what a region offers; an answer may be half a minute old.
	Capabilities(ctx context.Context, region string) (nf.RegionCapabilities, error)

	// Census yields a mark of each object of a kind in a region that belongs to an
	// instance, then one that is Synced, and then one for each change.
	Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[Mark, error]
}

// Mark is the state of one object in a region.
type Mark struct {
	Owner  string    // the instance
	Key    string    // nf.Ref.Key of the object
	Status nf.Status // nf.Absent: it was deleted, or belongs to no instance any longer
	Stamp  uint64    // another number whenever more than the status may have changed
	Synced bool      // not an object: all existing ones have been yielded
}

// Written says which objects A&AI gets.
type Written struct {
	Resources bool // a k8s-resource for each object and pod
	Servers   bool // a vserver for each pod, with its addresses
	Networks  bool // an l3-network for each network
	Flavors   bool // a flavor for each class of the nodes of each cloud region
}

// Config configures a Source. Instances, Networks and Regions are required.
type Config struct {
	Instances Instances
	Networks  Networks
	Regions   Regions
	Scheme    aai.Scheme
	Written   Written
	Logger    *slog.Logger  // default: discard
	Every     time.Duration // interval at which Watch looks for new regions; default 30 s
}

func (c *Config) complete() error {
	if c.Instances == nil || c.Networks == nil || c.Regions == nil {
		return errors.New("cannot create a source of A&AI: Instances, Networks and Regions are required")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Every = cmp.Or(c.Every, 30*time.Second)
	return nil
}

// Source says what A&AI is to have. It is safe for concurrent use.
type Source struct {
	cfg  Config
	wake delay.Signal // holds a token if a region was seen that is not watched

	mu      sync.Mutex
	watched map[string]*region // by id; those that Watch has begun to watch
	wanted  map[string]bool    // regions of the subjects that were read last
}

var (
	_ aaisync.Source    = (*Source)(nil)
	_ aaisync.Instances = (*Source)(nil)
)

// New returns a source. It reads nothing.
func New(cfg Config) (*Source, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Source{cfg: cfg, wake: delay.NewSignal(), watched: map[string]*region{}, wanted: map[string]bool{}}, nil
}

// Subjects implements aaisync.Source.
func (s *Source) Subjects(ctx context.Context) iter.Seq2[aaisync.Subject, error] {
	return func(yield func(aaisync.Subject, error) bool) {
		// It reports whether to go on.
		give := func(subject aaisync.Subject, isSubject bool, err error) bool {
			return err == nil && !isSubject || yield(subject, err) && err == nil
		}
		regions := cached{}
		if s.allInstances(ctx, regions, give) && s.allNetworks(ctx, regions, give) {
			s.allRegions(ctx, give)
		}
	}
}

// giver takes a subject, or an error, and reports whether to go on.
type giver func(subject aaisync.Subject, isSubject bool, err error) bool

func (s *Source) allInstances(ctx context.Context, regions cached, give giver) bool {
	if !s.writesInstances() {
		return true
	}
	all, err := s.cfg.Instances.Instances(ctx)
	if err != nil {
		return give(aaisync.Subject{}, false, err)
	}
	pods := map[string]bool{}
	for _, in := range all {
		subject, ok, err := s.instance(ctx, in, regions)
		if ok {
			pods[in.Region] = true
		}
		if !give(subject, ok, err) {
			return false
		}
	}
	s.follow(pods)
	return true
}

func (s *Source) allNetworks(ctx context.Context, regions cached, give giver) bool {
	if !s.cfg.Written.Networks {
		return true
	}
	for n, err := range s.cfg.Networks.From(ctx, nf.Cursor{}) {
		if err != nil {
			return give(aaisync.Subject{}, false, err)
		}
		if !give(s.network(ctx, n, regions)) {
			return false
		}
	}
	return true
}

func (s *Source) writesInstances() bool { return s.cfg.Written.Resources || s.cfg.Written.Servers }

// Subject implements aaisync.Source.
func (s *Source) Subject(ctx context.Context, id string) (aaisync.Subject, error) {
	subject, _, err := s.subject(ctx, id)
	return subject, err
}

// documents returns the documents of a subject, which was read before.
type documents func() ([]aai.Document, error)

// subject returns a subject and its documents. It returns nf.NotFound if A&AI is to have
// nothing of it.
func (s *Source) subject(ctx context.Context, id string) (out aaisync.Subject, docs documents, err error) {
	isSubject := false
	switch of := SubjectOf(id); {
	case of.Kind == nf.NetworkSubject && s.cfg.Written.Networks:
		var n nf.Network
		if n, err = s.cfg.Networks.Get(ctx, of.ID); err == nil {
			out, isSubject, err = s.network(ctx, n, cached{})
		}
		docs = func() ([]aai.Document, error) { return s.networkDocuments(n, out.Place) }
	case of.Kind == nf.RegionSubject && s.cfg.Written.Flavors:
		var r nf.Region
		if r, err = s.cfg.Instances.Region(ctx, of.ID); err == nil {
			out, isSubject = s.nodes(r)
		}
		docs = func() ([]aai.Document, error) { return s.flavors(ctx, out.Place) }
	case of.Kind == nf.InstanceSubject && s.writesInstances():
		var in nf.Instance
		if in, err = s.cfg.Instances.Instance(ctx, of.ID); err == nil {
			out, isSubject, err = s.instance(ctx, in, cached{})
		}
		docs = func() ([]aai.Document, error) { return s.instanceDocuments(ctx, in, out.Place) }
	}
	if err == nil && !isSubject {
		err = nf.E(nf.NotFound, "get", "subject "+id+" of A&AI", nil)
	}
	return out, docs, err
}

// Lacking says why A&AI is to have nothing of an instance: a text for people. It is
// empty if A&AI is to have its objects.
func (s *Source) Lacking(ctx context.Context, in nf.Instance) (string, error) {
	r, err := s.cfg.Instances.Region(ctx, in.Region)
	switch {
	case nf.IgnoreNotFound(err) != nil:
		return "", err
	case in.AAIInForce().Writer == nf.AAIAdapter:
		return "SO's adapter for CNFs writes its objects", nil
	case in.Unlisted:
		return "a termination has removed its objects from A&AI", nil
	case in.AAI.Writer == nf.AAINone:
		return "the instance asks for nothing", nil
	case placeOf(in, r).Tenant == "":
		return fmt.Sprintf("neither the instance nor cloud region %s names a tenant of A&AI", in.Region), nil
	case len(in.Inventory) == 0:
		return "the instance has no objects", nil
	}
	return "", nil
}

// Places implements aaisync.Instances.
func (s *Source) Places(ctx context.Context) ([]aai.Place, error) {
	all, err := s.cfg.Instances.Regions(ctx)
	var out []aai.Place
	for _, r := range all {
		if r.Owner != "" {
			out = append(out, aai.Place{Owner: r.Owner, Region: r.ID})
		}
	}
	return out, err
}

// Exists implements aaisync.Instances.
func (s *Source) Exists(ctx context.Context, id string) (bool, error) {
	_, err := s.cfg.Instances.Instance(ctx, id)
	return err == nil, nf.IgnoreNotFound(err)
}

// cached returns regions, and reads each once.
type cached map[string]nf.Region

func (s *Source) region(ctx context.Context, id string, known cached) (nf.Region, error) {
	if r, ok := known[id]; ok {
		return r, nil
	}
	r, err := s.cfg.Instances.Region(ctx, id)
	if nf.IgnoreNotFound(err) != nil {
		return nf.Region{}, err
	}
	known[id] = r // one that was removed has no tenant
	return r, nil
}

func placeOf(in nf.Instance, r nf.Region) aai.Place {
	return aai.Place{Owner: r.Owner, Region: in.Region, Tenant: cmp.Or(in.AAI.Tenant, r.AAITenant)}
}

// instance returns the subject of an instance, if A&AI is to have its objects.
func (s *Source) instance(ctx context.Context, in nf.Instance, known cached) (_ aaisync.Subject, isSubject bool, _ error) {
	if w := in.AAIInForce().Writer; w == nf.AAIAdapter || w == nf.AAINone || len(in.Inventory) == 0 {
		return aaisync.Subject{}, false, nil
	}
	r, err := s.region(ctx, in.Region, known)
	if err != nil {
		return aaisync.Subject{}, false, err
	}
	place := placeOf(in, r)
	out := aaisync.Subject{ID: InstanceID(in.ID), Place: place, Busy: in.Operation != "", Live: s.live(in)}
	out.Version = version(in.LastOperation, out.Busy, in.AAI.VNF, in.AAI.Module, place, s.cfg.Scheme, s.cfg.Written)
	return out, place.Tenant != "", nil
}

// network returns the subject of a network, if it exists in its region.
func (s *Source) network(ctx context.Context, n nf.Network, known cached) (_ aaisync.Subject, isSubject bool, _ error) {
	if n.State == nf.SharedCreating || n.State == nf.SharedDeleting {
		return aaisync.Subject{}, false, nil
	}
	r, err := s.region(ctx, n.Region, known)
	if err != nil {
		return aaisync.Subject{}, false, err
	}
	out := aaisync.Subject{ID: NetworkID(n.ID), Place: aai.Place{Owner: r.Owner, Region: n.Region, Tenant: r.AAITenant}, Busy: n.Operation != ""}
	out.Version = version(n.Last, out.Busy, string(n.State), out.Place, s.cfg.Scheme, s.cfg.Written)
	return out, r.Owner != "", nil
}

// version returns a short text that changes with any of the values.
func version(values ...any) string {
	h := fnv.New128a()
	for _, v := range values {
		_, _ = fmt.Fprintf(h, "%+v\x00", v)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
