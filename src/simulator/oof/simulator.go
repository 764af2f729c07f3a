package oof

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	defaultVersion = 30
	appID          = "CONDUCTOR"
)

// ErrNoSolution is wrapped by the error of a placement that no region fits.
var ErrNoSolution = errors.New("no cloud region fits")

// Config describes a simulator. AAI, User and Multicloud are mandatory.
type Config struct {
	AAI        string // URL of A&AI, without /aai
	User       string // of A&AI
	Password   string
	Version    int                         // of A&AI's API; 30 by default
	Multicloud string                      // URL of ONAP's broker, or of the service: "http://localhost:9015/api/multicloud"
	Authorize  func(*http.Request)         // adds credentials to requests to Multicloud; nil: they have none
	Client     *http.Client                // http.DefaultClient by default
	Allow      func(owner, id string) bool // limits the regions, as a policy does; nil: all
}

// Simulator is the placement part of OOF. It is safe for concurrent use.
type Simulator struct {
	cfg        Config
	faults     script.Faults[Fault]
	journal    script.Journal[Entry]
	violations script.Journal[string]
}

// New returns a simulator. It sends nothing.
func New(cfg Config) (*Simulator, error) {
	if cfg.AAI == "" || cfg.User == "" || cfg.Multicloud == "" {
		return nil, errors.New("cannot make a simulator of OOF: it needs AAI, User and Multicloud")
	}
	if cfg.Version == 0 {
		cfg.Version = defaultVersion
	}
	if cfg.Client == nil {
		cfg.Client = http.DefaultClient
	}
	if cfg.Allow == nil {
		cfg.Allow = func(string, string) bool { return true }
	}
	cfg.AAI, cfg.Multicloud = strings.TrimSuffix(cfg.AAI, "/"), strings.TrimSuffix(cfg.Multicloud, "/")
	return &Simulator{cfg: cfg, journal: script.Journal[Entry]{Most: maxEntries}, violations: script.Journal[string]{Most: maxEntries}}, nil
}

// Place chooses a cloud region. Its error wraps ErrNoSolution if none fits; the solution
// then has the reasons only. Other errors are those of an invalid demand, and of an A&AI
// that does not respond.
func (s *Simulator) Place(ctx context.Context, d Demand) (Solution, error) {
	out, err := s.place(ctx, d)
	s.journal.Add(Entry{d, out, err})
	return out, err
}

func (s *Simulator) place(ctx context.Context, d Demand) (Solution, error) {
	if err := d.check(); err != nil {
		return Solution{}, err
	}
	fault := s.faults.Take(func(Fault) bool { return true })
	if !script.Hold(ctx, fault.Before, fault.Delay) {
		return Solution{}, fmt.Errorf("cannot place: %w", context.Cause(ctx))
	}
	if fault.Err != nil {
		return Solution{}, fault.Err
	}
	out, err := s.choose(ctx, d)
	if err == nil && fault.Edit != nil {
		fault.Edit(&out)
	}
	return out, err
}

// choose returns the region with the highest score of those that fit.
func (s *Simulator) choose(ctx context.Context, d Demand) (Solution, error) {
	all, err := s.candidates(ctx)
	if err != nil {
		return Solution{}, err
	}
	var best *candidate
	for _, c := range all {
		if err := s.judge(ctx, c, d); err != nil {
			return Solution{}, err
		}
		if c.step == "" && (best == nil || c.score() > best.score()) {
			best = c
		}
	}
	out := Solution{}
	var reasons []string
	for _, c := range all {
		if c == best {
			continue
		}
		if c.step == "" {
			c.reject(StepScore, "%s/%s has the score %d, this one %d", best.owner, best.id, best.score(), c.score())
		}
		out.Rejected = append(out.Rejected, Rejection{c.owner, c.id, c.step, c.reason})
		reasons = append(reasons, fmt.Sprintf("%s/%s: %s", c.owner, c.id, c.reason))
	}
	if best == nil {
		return out, fmt.Errorf("cannot place: %w (%s)", ErrNoSolution, strings.Join(reasons, "; "))
	}
	out.Owner, out.Region, out.Score, out.Choices = best.owner, best.id, best.score(), best.choices
	return out, nil
}

// judge takes a candidate through the steps, until one rejects it.
func (s *Simulator) judge(ctx context.Context, c *candidate, d Demand) error {
	for _, step := range []func(context.Context, *candidate, Demand) error{s.checkRegion, s.matchFlavors, s.checkCapacity} {
		if err := step(ctx, c, d); err != nil {
			return err
		}
		if c.step != "" {
			return nil
		}
	}
	return nil
}

func (s *Simulator) violate(format string, args ...any) {
	s.violations.Add(fmt.Sprintf(format, args...))
}
