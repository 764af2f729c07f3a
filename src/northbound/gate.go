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

// Access proves who makes a request.
type Access interface {
	// Authenticate returns who it is: nf.Unauthenticated for who cannot prove
	// it, nf.TooMany for who has tried too often, nf.Unreachable when nobody can
	// say.
	Authenticate(r *http.Request) (nf.Identity, error)
	// Challenges returns what WWW-Authenticate says to who cannot prove it.
	Challenges() []string
}

// Audit keeps the record of what was asked for.
type Audit interface {
	// Record writes an entry down. It returns when that is done, or
	// nf.Unreachable: what an intent announces is not done then.
	Record(ctx context.Context, e nf.AuditEntry) error
}

// gate lets requests in. Every one passes it, routed or not.
type gate struct {
	access  Access // nil: access is open
	audit   Audit  // nil: nothing is recorded
	limiter *limiter
	origin  *http.CrossOriginProtection
	hosts   []string
	open    []string // routes that need no proof
	exempt  []string // routes that are not limited, because machines ask them for the service's own sake
	routed  func(*http.Request, string)
}

func newGate(cfg Config) *gate {
	g := &gate{
		access: cfg.Access, audit: cfg.Audit, limiter: newLimiter(cfg.Limit, time.Now),
		// A page of another site must not act through the browser of somebody who
		// can reach us: there may be no other guard between them.
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

// around puts a handler behind the gate.
func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if route := mux.CurrentRoute(r); route != nil {
			c.route, _ = route.GetPathTemplate() // a route without a template has none
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

// admit decides whether a request may come in, and as whom; nobody when it need
// not say.
func (g *gate) admit(r *http.Request) (*nf.Identity, error) {
	route := callOf(r.Context()).route
	if g.origin.Check(r) != nil {
		return nil, refusal(http.StatusForbidden, "the request comes from a page of another site")
	}
	if g.access == nil && !g.meant(r) {
		return nil, refusal(http.StatusMisdirectedRequest, "the request is for another host")
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

// visit is a request that is at the gate, or behind it.
type visit struct {
	gate  *gate
	trail *nf.Trail
	entry nf.AuditEntry
	body  *digest // nil when the request changes nothing
}

// entryOf returns what can be said of a request before it is carried out.
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

// announce records what a request is about to change.
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
		return &nf.Error{Kind: nf.Unreachable, Op: "carry out", Subject: "the request", Reason: "audit",
			Err: errors.New("it cannot be recorded, and nothing is changed without a record")}
	}
	return nil
}

// serve carries the request out and records what came of it.
func (v *visit) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	whole := false
	defer v.left(r.Context(), &whole)
	next.ServeHTTP(w, r)
	whole = true
}

// left records how a request ended. One that is not whole ended in a panic;
// what its client sees is decided further out.
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

// refused reports whether the answer is that one may not.
func refused(c *call) bool {
	status := c.code()
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// refused records that a request did not come in, unless its client has filled
// the record with that already.
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

// lastWord is how long recording an outcome may take.
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
	// The last word is said though the client has gone away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	_ = v.gate.audit.Record(ctx, e) // who keeps the record tells of what it could not keep
}
