package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// regionHealth is the state of a region, derived from its API server's responses.
type regionHealth struct {
	region string
	clock  func() time.Time
	log    *slog.Logger

	mu           sync.Mutex
	condition    nf.RegionCondition
	reason       string
	message      string
	since        time.Time
	checked      time.Time
	outageLogged time.Time // when the log reported the region as unreachable; zero: it has recovered
}

// observe updates the state from a response, and returns a reason if the response
// shows a fault of the region. A 5xx response to one request says nothing about
// the region.
func (s *regionHealth) observe(ctx context.Context, resp *http.Response) (reason string) {
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		s.markUnreachable(ctx, nf.ReasonUnauthorized, fmt.Errorf("it answers %s", statusText(resp.StatusCode)))
		return nf.ReasonUnauthorized
	case resp.StatusCode >= http.StatusInternalServerError:
		s.markProbed()
	default:
		s.markAvailable(ctx)
	}
	return ""
}

// available reports whether the region is available.
func (s *regionHealth) available() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.condition == nf.RegionAvailable
}

// markProbed records that the region was checked without a conclusion.
func (s *regionHealth) markProbed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = s.clock()
}

// markAvailable records that the region is available.
func (s *regionHealth) markAvailable(ctx context.Context) {
	s.mu.Lock()
	s.checked = s.clock()
	if s.condition != nf.RegionAvailable {
		s.condition, s.reason, s.message, s.since = nf.RegionAvailable, "", "", s.checked
	}
	outage := s.outageLogged
	s.outageLogged = time.Time{}
	s.mu.Unlock()
	if !outage.IsZero() {
		s.log.InfoContext(ctx, "cloud region reachable again", "region", s.region, "after", s.clock().Sub(outage).String())
	}
}

// markUnreachable records that the region is unreachable, and why.
func (s *regionHealth) markUnreachable(ctx context.Context, reason string, cause error) {
	s.mu.Lock()
	s.checked = s.clock()
	if s.condition != nf.RegionUnreachable {
		s.condition, s.since = nf.RegionUnreachable, s.checked
	}
	s.reason, s.message = reason, clipped(sentences[reason]+": "+outbound.Plain(cause).Error())
	first, message := s.outageLogged.IsZero(), s.message
	if first {
		s.outageLogged = s.checked
	}
	s.mu.Unlock()
	if first {
		s.log.WarnContext(ctx, "cloud region is unreachable", "region", s.region, "reason", reason, "cause", message)
	}
}

// copyOutage copies the log state of a region's previous cluster, after its
// kubeconfig was replaced, so that an outage is not logged again.
func (s *regionHealth) copyOutage(former *regionHealth) {
	former.mu.Lock()
	outageLogged := former.outageLogged
	former.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outageLogged = outageLogged
}

// state returns the state of the region, including the expiry of its
// credential.
func (c *Cluster) state(warning time.Duration) nf.RegionState {
	s := &c.transport.health
	s.mu.Lock()
	out := nf.RegionState{
		Condition: s.condition, Reason: s.reason, Message: s.message, Since: s.since, Checked: s.checked, Credential: c.credential,
	}
	s.mu.Unlock()
	out.Breaker, out.Retry = c.transport.breaker.State()
	if p, renewed := c.transport.renewal(); renewed {
		return withRenewal(c, p, out)
	}
	now, ends := s.clock(), c.credential.Expires
	if ends.IsZero() || now.Before(ends.Add(-warning)) {
		return out
	}
	return withExpiry(out, ends.Add(-warning), expiry(c, ends))
}

// expiry says when the credential expires or expired.
func expiry(c *Cluster, ends time.Time) string {
	verb := "expires"
	if !c.transport.cfg.Clock().Before(ends) {
		verb = "expired"
	}
	return fmt.Sprintf("its %s %s on %s", credentialNouns[c.credential.Kind], verb, ends.UTC().Format(time.RFC3339))
}

// withExpiry adds to a state that the credential expires, and since when that
// is so.
func withExpiry(s nf.RegionState, since time.Time, words string) nf.RegionState {
	switch {
	case s.Condition == nf.RegionAvailable:
		s.Condition, s.Message = nf.RegionExpiring, words
		if since.After(s.Since) {
			s.Since = since
		}
	case s.Reason == nf.ReasonUnauthorized:
		s.Message += "; " + words
	}
	return s
}

// withRenewal adds the renewal of the credential to a state of a cluster. If the renewal
// fails, it adds the cause, unless the message has it already.
func withRenewal(c *Cluster, p renewalProblem, s nf.RegionState) nf.RegionState {
	s.Credential.Rotates, s.Credential.Expires, s.Credential.Request = true, p.expires, p.request
	if p.failure == nil {
		return s
	}
	s.Credential.Failing = p.since
	cause := "cannot be renewed: " + tokenCause(p.failure)
	switch {
	case s.Condition != nf.RegionAvailable && p.expires.IsZero():
		return s
	case s.Condition != nf.RegionAvailable:
		return withExpiry(s, p.since, expiry(c, p.expires))
	case p.expires.IsZero():
		return withExpiry(s, p.since, clipped("its "+credentialNouns[c.credential.Kind]+" "+cause))
	}
	return withExpiry(s, p.since, clipped(expiry(c, p.expires)+" and "+cause))
}
