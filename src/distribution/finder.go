package distribution

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
)

const (
	maxServices = 200 // that a search reads
)

// Services reads the services that SDC has distributed.
type Services interface {
	Downloads
	// Distributed returns the distributed services.
	Distributed(ctx context.Context) ([]sdc.Summary, error)
	// Service returns the metadata of a service.
	Service(ctx context.Context, uuid string) (sdc.Metadata, error)
}

// FinderConfig configures a Finder. Services and Definitions are required.
type FinderConfig struct {
	Services    Services
	Definitions Definitions
	Wait        time.Duration // of a caller for a search; 20 s by default
	Every       time.Duration // between two services that a search reads; 1 s by default
	Logger      *slog.Logger
}

// Finder deploys definitions that are unknown here on demand. SDC cannot be searched by
// the UUIDs of modules, so a Finder reads the services that are distributed, once for
// each version, and remembers their modules. It is safe for concurrent use, except Run.
type Finder struct {
	cfg      FinderConfig
	deployer deployer
	wake     delay.Signal

	mu      sync.Mutex
	wanted  map[pair][]chan error // whose callers wait
	modules map[pair]located
	read    map[string]bool // services
}

// pair identifies a definition.
type pair struct{ name, version string }

// located is a module of a service.
type located struct {
	service string
	module  sdc.Module
	chart   sdc.Artifact
}

// NewFinder returns a finder.
func NewFinder(cfg FinderConfig) (*Finder, error) {
	if cfg.Services == nil || cfg.Definitions == nil {
		return nil, errors.New("cannot create a finder of definitions: Services and Definitions are required")
	}
	if cfg.Wait <= 0 {
		cfg.Wait = 20 * time.Second
	}
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Finder{
		cfg: cfg, deployer: deployer{cfg.Services, cfg.Definitions, firstPause}, wake: delay.NewSignal(),
		wanted: map[pair][]chan error{}, modules: map[pair]located{}, read: map[string]bool{},
	}, nil
}

// Find deploys a definition, and returns nil once it is stored. It returns nf.NotFound
// if no distributed service has the module. If the search takes too long, it returns
// nf.Timeout; the search continues, so that a later call finds the definition.
func (f *Finder) Find(ctx context.Context, name, version string) error {
	key, found := pair{name, version}, make(chan error, 1)
	f.mu.Lock()
	f.wanted[key] = append(f.wanted[key], found)
	f.mu.Unlock()
	f.wake.Send()
	timer := time.NewTimer(f.cfg.Wait)
	defer timer.Stop()
	select {
	case err := <-found:
		return err
	case <-timer.C:
		return nf.E(nf.Timeout, "find", subjectOf(key), errors.New("the search in SDC's services takes longer, and continues; try again later"))
	case <-ctx.Done():
		return nf.E(nf.Cancelled, "find", subjectOf(key), context.Cause(ctx))
	}
}

func subjectOf(key pair) string { return "definition \"" + key.name + "\" \"" + key.version + "\"" }

// Run searches for wanted definitions until the context ends. It returns nil.
func (f *Finder) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		keys := f.pending(nil)
		if len(keys) == 0 {
			delay.For(ctx, time.Hour, f.wake)
			continue
		}
		err := f.search(ctx, keys)
		if err != nil && ctx.Err() == nil {
			f.cfg.Logger.WarnContext(ctx, "failed to search SDC's services for definitions", "error", err)
		}
		f.resolve(keys, func(key pair) (bool, error) {
			if err != nil {
				return true, err
			}
			return true, nf.E(nf.NotFound, "find", subjectOf(key), errors.New("no distributed service of SDC has it"))
		})
	}
	return nil
}

// pending returns the definitions among the keys that are wanted; all if keys is nil.
func (f *Finder) pending(keys []pair) (out []pair) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.wanted {
		if keys == nil || slices.Contains(keys, key) {
			out = append(out, key)
		}
	}
	return out
}

// search deploys the wanted definitions that it knows, and reads services until none is
// wanted.
func (f *Finder) search(ctx context.Context, keys []pair) error {
	f.deployKnown(ctx, keys)
	if len(f.pending(keys)) == 0 {
		return nil
	}
	services, err := f.cfg.Services.Distributed(ctx)
	if err != nil {
		return err
	}
	read := 0
	for _, s := range services {
		if f.hasRead(s.UUID) || read == maxServices || len(f.pending(keys)) == 0 {
			continue
		}
		if read++; read > 1 {
			delay.For(ctx, f.cfg.Every, nil)
		}
		if err := f.readService(ctx, s.UUID); err != nil {
			return err
		}
		f.deployKnown(ctx, keys)
	}
	return nil
}

func (f *Finder) hasRead(service string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read[service]
}

// readService remembers the modules of a service. One whose modules cannot be read is
// skipped.
func (f *Finder) readService(ctx context.Context, uuid string) error {
	m, err := f.cfg.Services.Service(ctx, uuid)
	if nf.IgnoreNotFound(err) != nil {
		return err
	}
	for _, resource := range m.Resources {
		i := slices.IndexFunc(resource.Artifacts, func(a sdc.Artifact) bool { return a.Type == sdc.TypeModules })
		if i < 0 || resource.Type != sdc.ResourceVF && resource.Type != "" {
			continue
		}
		modules, failed, invalid := f.deployer.modules(ctx, resource.Artifacts[i])
		if nf.KindOf(failed) == nf.Unreachable || ctx.Err() != nil {
			return failed
		}
		if err := errors.Join(failed, invalid); err != nil {
			f.cfg.Logger.WarnContext(ctx, "failed to read the modules of a service of SDC", "service", uuid, "error", err)
		}
		f.remember(uuid, modules, resource.Artifacts)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read[uuid] = true
	return nil
}

func (f *Finder) remember(service string, modules []sdc.Module, artifacts []sdc.Artifact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range modules {
		if chart, ok := m.Chart(artifacts); ok {
			f.modules[pair{m.Invariant, m.Customization}] = located{service, m, chart}
		}
	}
}

// deployKnown deploys the wanted definitions among the keys whose modules are known.
func (f *Finder) deployKnown(ctx context.Context, keys []pair) {
	f.resolve(keys, func(key pair) (bool, error) {
		f.mu.Lock()
		at, ok := f.modules[key]
		f.mu.Unlock()
		if !ok {
			return false, nil
		}
		res, err := f.deployer.module(ctx, at.service, at.module, at.chart)
		err = errors.Join(err, res.download, res.deployed)
		if err != nil && nf.KindOf(err) == nf.NotFound { // the service was deleted since it was read
			f.mu.Lock()
			delete(f.modules, key)
			f.mu.Unlock()
		}
		return true, err
	})
}

// resolve calls decide for each wanted definition among the keys, and passes its error on
// to the callers if it has decided.
func (f *Finder) resolve(keys []pair, decide func(pair) (bool, error)) {
	for _, key := range f.pending(keys) {
		decided, err := decide(key)
		if !decided {
			continue
		}
		f.mu.Lock()
		for _, found := range f.wanted[key] {
			found <- err
		}
		delete(f.wanted, key)
		f.mu.Unlock()
	}
}
