package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// standing is how a region is doing, by what its API server answers.
type standing struct {
	region string
	clock  func() time.Time
	log    *slog.Logger

	mu        sync.Mutex
	condition nf.RegionCondition
	reason    string
	message   string
	since     time.Time
	checked   time.Time
	mourned   time.Time // when it was logged that the region is away; zero: it is back
}

// hear takes an answer for what it says of the region, and returns why it is not
// a good one. A server's trouble with one request says nothing.
func (s *standing) hear(ctx context.Context, resp *http.Response) (reason string) {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		s.bad(ctx, "unauthorized", fmt.Errorf("it answers %s", resp.Status))
		return "unauthorized"
	case resp.StatusCode >= http.StatusInternalServerError:
		s.touch()
	default:
		s.good(ctx)
	}
	return ""
}

// touch records that the region was asked, to no conclusion.
func (s *standing) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = s.clock()
}

// good records that the region can be worked with.
func (s *standing) good(ctx context.Context) {
	s.mu.Lock()
	s.checked = s.clock()
	if s.condition != nf.RegionAvailable {
		s.condition, s.reason, s.message, s.since = nf.RegionAvailable, "", "", s.checked
	}
	away := s.mourned
	s.mourned = time.Time{}
	s.mu.Unlock()
	if !away.IsZero() {
		s.log.InfoContext(ctx, "cloud region is back", "region", s.region, "after", s.clock().Sub(away).String())
	}
}

// bad records that the region cannot be worked with, and why.
func (s *standing) bad(ctx context.Context, reason string, cause error) {
	if request, ok := errors.AsType[*url.Error](cause); ok {
		cause = request.Err // what was asked for says nothing
	}
	s.mu.Lock()
	s.checked = s.clock()
	if s.condition != nf.RegionUnreachable {
		s.condition, s.since = nf.RegionUnreachable, s.checked
	}
	s.reason, s.message = reason, clipped(sentences[reason]+": "+cause.Error())
	first, message := s.mourned.IsZero(), s.message
	if first {
		s.mourned = s.checked
	}
	s.mu.Unlock()
	if first {
		s.log.WarnContext(ctx, "cloud region is unreachable", "region", s.region, "reason", reason, "cause", message)
	}
}

// follow makes the standing that of a region which was known before under
// another kubeconfig: what was logged of it holds.
func (s *standing) follow(former *standing) {
	former.mu.Lock()
	mourned := former.mourned
	former.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mourned = mourned
}

// state puts together how the region is doing.
func (c *Cluster) state(warning time.Duration) nf.RegionState {
	s := &c.guard.standing
	s.mu.Lock()
	out := nf.RegionState{
		Condition: s.condition, Reason: s.reason, Message: s.message, Since: s.since, Checked: s.checked, Credential: c.credential,
	}
	s.mu.Unlock()
	out.Breaker, out.Retry = c.guard.breaker.now()
	now, ends := s.clock(), c.credential.Expires
	if ends.IsZero() || now.Before(ends.Add(-warning)) {
		return out
	}
	expiry := "expires"
	if !now.Before(ends) {
		expiry = "expired"
	}
	expiry = fmt.Sprintf("its %s %s on %s", credentialNouns[c.credential.Kind], expiry, ends.UTC().Format(time.RFC3339))
	switch {
	case out.Condition == nf.RegionAvailable:
		out.Condition, out.Message = nf.RegionExpiring, expiry
		if begun := ends.Add(-warning); begun.After(out.Since) {
			out.Since = begun
		}
	case out.Reason == "unauthorized":
		out.Message += "; " + expiry
	}
	return out
}
