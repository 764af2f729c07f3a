package northbound

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Access authenticates requests.
type Access interface {
	// Authenticate returns the caller's identity. It returns nf.Unauthenticated
	// without valid credentials, nf.TooManyRequests after too many attempts, and
	// nf.Unreachable if the credentials cannot be checked at present.
	Authenticate(r *http.Request) (nf.Identity, error)
	// Challenges returns the values of WWW-Authenticate for a 401 response.
	Challenges() []string
}

// Audit stores the audit log.
type Audit interface {
	// Record stores an entry and returns when it is stored. If it returns
	// nf.Unreachable for an intent, the request must not be executed.
	Record(ctx context.Context, e nf.AuditEntry) error
}

// gate authenticates, rate-limits and audits requests. Every request passes it,
// routed or not.
type gate struct {
	access  Access // nil: no authentication
	audit   Audit  // nil: no audit log
	limiter *limiter
	origin  *http.CrossOriginProtection
	hosts   []string
	open    []string // routes that need no authentication
	exempt  []string // routes without rate limit, because machines poll them to monitor the service
	routed  func(*http.Request, string)
}

func newGate(cfg Config) *gate {
	g := &gate{
		access: cfg.Access, audit: cfg.Audit, limiter: newLimiter(cfg.Limit, time.Now),
		// A page of another site must not act through a browser that can reach
		// the service: there may be no other protection.
		origin: http.NewCrossOriginProtection(),
		hosts:  cfg.Hosts,
		routed: cfg.Routed,
		open:   []string{"/healthz", "/readyz", "/docs", "/swagger.yaml", "/swagger.json"},
		exempt: []string{"/healthz", "/readyz", "/metrics"},
	}
	if !cfg.ProtectMetrics {
		g.open = append(g.open, "/metrics")
	}
	return g
}

// around wraps a handler with the gate.
func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if route := mux.CurrentRoute(r); route != nil {
			c.route, _ = route.GetPathTemplate() // on error the route has no template
			g.routed(r, c.route)
		}
		ctx, trail := nf.WithTrail(r.Context())
		v := &visit{gate: g, trail: trail, entry: entryOf(r.WithContext(ctx), c)}
		id, err := g.admit(r)
		if id != nil {
			ctx = nf.WithIdentity(ctx, *id)
			v.entry.Kind, v.entry.Identity, c.identity = id.Kind, id.Name, id.String()
		} else if g.access == nil {
			v.entry.Kind = nf.Anonymous().Kind
		}
		r = r.WithContext(ctx)
		if err == nil && changes(r) {
			err = v.announce(r)
		}
		if err != nil {
			g.challenge(w, err)
			Refuse(w, r, err)
			v.refused(ctx, c)
			return
		}
		v.serve(next, w, r)
	})
}

// admit decides whether to accept a request, and returns the caller's identity.
// The identity is nil unless the request was authenticated.
func (g *gate) admit(r *http.Request) (*nf.Identity, error) {
	route := callOf(r.Context()).route
	if g.origin.Check(r) != nil {
		return nil, refusal(http.StatusForbidden, "the request is from a page of another origin")
	}
	if g.access == nil && !g.meant(r) {
		return nil, refusal(http.StatusMisdirectedRequest, "the Host header names another host")
	}
	if slices.Contains(g.exempt, route) && (g.access == nil || slices.Contains(g.open, route)) {
		return nil, nil
	}
	if g.access == nil || slices.Contains(g.open, route) {
		return nil, g.limiter.take(clientOf(r))
	}
	id, err := g.access.Authenticate(r)
	if err != nil {
		if limited := g.limiter.take(clientOf(r)); limited != nil {
			err = limited
		}
		return nil, err
	}
	if slices.Contains(g.exempt, route) {
		return &id, nil
	}
	return &id, g.limiter.take(id.String())
}

func (g *gate) challenge(w http.ResponseWriter, err error) {
	if g.access == nil || nf.KindOf(err) != nf.Unauthenticated {
		return
	}
	for _, c := range g.access.Challenges() {
		w.Header().Add("WWW-Authenticate", c)
	}
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// visit is a request at the gate, with its audit entry.
type visit struct {
	gate  *gate
	trail *nf.Trail
	entry nf.AuditEntry
	body  *digest // nil when the request changes nothing
}

// entryOf returns the fields of the audit entry that are known before the
// request is executed.
func entryOf(r *http.Request, c *call) nf.AuditEntry {
	e := nf.AuditEntry{ID: rand.Text(), Request: c.id, Remote: remoteOf(r), Method: r.Method, Route: c.route}
	if !slices.Contains(methods(), e.Method) {
		e.Method = "other"
	}
	for _, value := range mux.Vars(r) {
		if nf.CheckID("", value) == nil {
			e.Subjects = append(e.Subjects, value)
		}
	}
	slices.Sort(e.Subjects)
	return e
}

// announce records the intent of a request that may change something.
func (v *visit) announce(r *http.Request) error {
	v.body = newDigest(r.Body)
	r.Body = v.body
	if v.gate.audit == nil {
		return nil
	}
	e := v.entry
	e.Phase = nf.AuditIntent
	err := v.gate.audit.Record(r.Context(), e)
	if err != nil {
		return &nf.Error{Kind: nf.Unreachable, Op: "carry out", Subject: "the request", Reason: nf.ReasonAudit,
			Err: errors.New("the audit log cannot be written, so nothing is changed")}
	}
	return nil
}

// serve executes the request and records its outcome.
func (v *visit) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	whole := false
	defer v.left(r.Context(), &whole)
	next.ServeHTTP(w, r)
	whole = true
}

// left records the outcome of a request. If whole is false, the handler
// panicked; an outer layer decides the response.
func (v *visit) left(ctx context.Context, whole *bool) {
	c := callOf(ctx)
	if !*whole {
		c.kind, c.failed = nf.Internal, true
	}
	if v.body == nil && !refused(c) && !v.trail.Hidden() {
		return
	}
	e := v.entry
	e.Phase = nf.AuditRefusal
	if v.body != nil {
		e.Phase, e.Digest = nf.AuditOutcome, v.body.sum()
	}
	v.record(ctx, e, c)
}

// refused reports whether the response denies the request: 401, 403 or 429.
func refused(c *call) bool {
	status := c.code()
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// refused records that a request was not accepted, unless the client has too
// many such entries already.
func (v *visit) refused(ctx context.Context, c *call) {
	e := v.entry
	e.Phase = nf.AuditRefusal
	client := v.entry.Remote
	if c.identity != "" {
		client = c.identity
	}
	missed, tell := v.gate.limiter.tell(client)
	if e.Missed = missed; tell {
		v.record(ctx, e, c)
	}
}

// lastWord limits the time to record an outcome.
const lastWord = 15 * time.Second

func (v *visit) record(ctx context.Context, e nf.AuditEntry, c *call) {
	if v.gate.audit == nil {
		return
	}
	v.trail.Tell(&e)
	e.Status, e.Outcome = c.code(), nf.AuditDone
	if c.failed {
		e.Outcome = c.kind.String()
	}
	if v.trail.Hidden() && e.Status == http.StatusNotFound {
		e.Outcome = nf.AuditHidden
	}
	if e.Operation == "" {
		e.Operation = c.begun
	}
	// Record the outcome even if the client has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	_ = v.gate.audit.Record(ctx, e) // the audit log itself reports entries that it could not store
}
