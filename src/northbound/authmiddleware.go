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

// authMiddleware authenticates, rate-limits and audits requests. Every request
// passes it, routed or not.
type authMiddleware struct {
	access  Access // nil: no authentication
	audit   Audit  // nil: no audit log
	limiter *limiter
	origin  *http.CrossOriginProtection
	hosts   []string
	open    []string // routes that need no authentication
	exempt  []string // routes without rate limit, because machines poll them to monitor the service
	routed  func(*http.Request, string)
}

func newAuthMiddleware(cfg Config) *authMiddleware {
	a := &authMiddleware{
		access: cfg.Access, audit: cfg.Audit, limiter: newLimiter(cfg.Limit, time.Now),
		// A page of another site must not act through a browser that can reach
		// the service: there may be no other protection.
		origin: http.NewCrossOriginProtection(),
		hosts:  cfg.Hosts,
		routed: cfg.Routed,
		open:   []string{"/healthz", "/readyz", "/", "/docs", "/openapi.yaml", "/openapi.json", "/swagger.yaml", "/swagger.json"},
		exempt: []string{"/healthz", "/readyz", "/metrics"},
	}
	if cfg.MayScrape == nil {
		a.open = append(a.open, "/metrics")
	}
	return a
}

// around wraps a handler.
func (a *authMiddleware) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if route := mux.CurrentRoute(r); route != nil {
			c.route, _ = Template(route) // on error the route has no template
			a.routed(r, c.route)
		}
		ctx, trail := nf.WithTrail(r.Context())
		ar := &auditedRequest{auth: a, trail: trail, entry: entryOf(r.WithContext(ctx), c)}
		id, err := a.admit(r)
		if id != nil {
			ctx = nf.WithIdentity(ctx, *id)
			ar.entry.Kind, ar.entry.Identity, c.identity = id.Kind, id.Name, id.String()
		} else if a.access == nil {
			ar.entry.Kind = nf.Anonymous().Kind
		}
		r = r.WithContext(ctx)
		if err == nil && changes(r) {
			err = ar.recordIntent(r)
		}
		if err != nil {
			a.challenge(w, err)
			Refuse(w, r, err)
			ar.recordRefusal(ctx, c)
			return
		}
		ar.serve(next, w, r)
	})
}

// admit decides whether to accept a request, and returns the caller's identity.
// The identity is nil unless the request was authenticated.
func (a *authMiddleware) admit(r *http.Request) (*nf.Identity, error) {
	route := callOf(r.Context()).route
	if a.origin.Check(r) != nil {
		return nil, refusal(http.StatusForbidden, "the request is from a page of another origin")
	}
	if a.access == nil && !a.meant(r) {
		return nil, refusal(http.StatusMisdirectedRequest, "the Host header names another host")
	}
	if slices.Contains(a.exempt, route) && (a.access == nil || slices.Contains(a.open, route)) {
		return nil, nil
	}
	if a.access == nil || slices.Contains(a.open, route) {
		return nil, a.limiter.take(clientOf(r))
	}
	id, err := a.access.Authenticate(r)
	if err != nil {
		if limited := a.limiter.take(clientOf(r)); limited != nil {
			err = limited
		}
		return nil, err
	}
	if slices.Contains(a.exempt, route) {
		return &id, nil
	}
	return &id, a.limiter.take(id.String())
}

func (a *authMiddleware) challenge(w http.ResponseWriter, err error) {
	if a.access == nil || nf.KindOf(err) != nf.Unauthenticated {
		return
	}
	for _, c := range a.access.Challenges() {
		w.Header().Add("WWW-Authenticate", c)
	}
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// auditedRequest is a request in authMiddleware, with its audit entry.
type auditedRequest struct {
	auth  *authMiddleware
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

// recordIntent records the intent of a request that may change something.
func (ar *auditedRequest) recordIntent(r *http.Request) error {
	ar.body = newDigest(r.Body)
	r.Body = ar.body
	if ar.auth.audit == nil {
		return nil
	}
	e := ar.entry
	e.Phase = nf.AuditIntent
	err := ar.auth.audit.Record(r.Context(), e)
	if err != nil {
		return &nf.Error{Kind: nf.Unreachable, Op: "carry out", Subject: "the request", Reason: nf.ReasonAudit,
			Err: errors.New("the audit log cannot be written, so nothing is changed")}
	}
	return nil
}

// serve executes the request and records its outcome.
func (ar *auditedRequest) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	whole := false
	defer ar.recordOutcome(r.Context(), &whole)
	next.ServeHTTP(w, r)
	whole = true
}

// recordOutcome records the outcome of a request. If whole is false, the handler
// panicked; an outer layer decides the response.
func (ar *auditedRequest) recordOutcome(ctx context.Context, whole *bool) {
	c := callOf(ctx)
	if !*whole {
		c.kind, c.failed = nf.Internal, true
	}
	if ar.body == nil {
		if refused(c) || ar.trail.Hidden() {
			ar.recordRefusal(ctx, c)
		}
		return
	}
	e := ar.entry
	e.Phase, e.Digest = nf.AuditOutcome, ar.body.sum()
	ar.record(ctx, e, c)
}

// refused reports whether the response denies the request: 401, 403 or 429.
func refused(c *call) bool {
	status := c.code()
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
}

// recordRefusal records that a request was not accepted, unless the client has too
// many such entries already.
func (ar *auditedRequest) recordRefusal(ctx context.Context, c *call) {
	e := ar.entry
	e.Phase = nf.AuditRefusal
	client := ar.entry.Remote
	if c.identity != "" {
		client = c.identity
	}
	missed, tell := ar.auth.limiter.tell(client)
	if e.Missed = missed; tell {
		ar.record(ctx, e, c)
	}
}

// recordTimeout limits the time to record an outcome.
const recordTimeout = 15 * time.Second

func (ar *auditedRequest) record(ctx context.Context, e nf.AuditEntry, c *call) {
	if ar.auth.audit == nil {
		return
	}
	ar.trail.Tell(&e)
	e.Status, e.Outcome = c.code(), nf.AuditDone
	if e.Operation == "" {
		e.Operation = c.begun
	}
	switch {
	case ar.trail.Hidden() && (e.Status == http.StatusNotFound || !c.failed): // a deletion of nothing succeeds
		e.Outcome = nf.AuditHidden
	case c.failed:
		e.Outcome = c.kind.String()
	case e.Operation != "":
		e.Outcome = nf.AuditAccepted
	}
	// Record the outcome even if the client has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	_ = ar.auth.audit.Record(ctx, e) // the audit log itself reports entries that it could not store
}
