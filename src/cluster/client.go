package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Accept headers that request only metadata, which is small, where nothing else
// is needed.
const (
	acceptMeta     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

const (
	attempts   = 6                      // of one request, including the first
	firstPause = 100 * time.Millisecond // before the second attempt; doubled for each further one
	longestAsk = 5 * time.Second        // longest Retry-After that is waited for; a longer one fails the request
)

// client sends requests to a region's API server, either as the service or as a
// service account that it impersonates.
type client struct {
	region    region
	transport *breakerTransport          // handles every request
	apis      *apis                      // the kinds that the API server serves
	answers   *answers                   // what the API server has answered
	verb      func(string) *rest.Request // starts a request with an HTTP method
	user      string                     // that it impersonates; empty: none
	parallel  int                        // concurrent requests of one call
}

// as returns a client that impersonates a user.
func (c *client) as(user string) *client {
	out := *c
	out.user = user
	out.verb = func(verb string) *rest.Request {
		return c.verb(verb).SetHeader(transport.ImpersonateUserHeader, user)
	}
	return &out
}

// request starts a request to an object.
func (c *client) request(verb string, t target) *rest.Request {
	return t.kind.at(c.verb(verb), t.ref.Namespace, t.ref.Name)
}

// response is the response to a successful request.
type response struct {
	code     int
	warnings []string
	repeated bool // an earlier attempt may have succeeded, its response lost
}

// reader decodes the body of a response. It must not keep the body.
type reader func(body []byte) error

// into returns a reader that decodes JSON.
func into(out any) reader {
	return func(body []byte) error { return json.Unmarshal(body, out) }
}

// send sends a request, which must be idempotent. It retries while the API
// server is unreachable or asks for a short wait. Read receives the response;
// it may be nil. The error is not translated.
func (c *client) send(ctx context.Context, build func() *rest.Request, read reader) (response, error) {
	return c.sendDespite(ctx, func(error) bool { return false }, build, read)
}

// sendDespite is send, but also retries errors that passing accepts.
func (c *client) sendDespite(ctx context.Context, passing func(error) bool, build func() *rest.Request, read reader) (response, error) {
	var out response
	for n := 1; ; n++ {
		err := c.once(ctx, build, &out, read)
		if err == nil {
			return out, nil
		}
		if n == attempts || ctx.Err() != nil || !transient(err) && !passing(err) || retryAfter(err) > longestAsk {
			return out, err
		}
		out.repeated = out.repeated || transient(err) && !apierrors.IsTooManyRequests(err)
		switch end := c.pause(ctx, max(retryAfter(err), backoff(n))); {
		case errors.Is(end, errReplaced):
			return out, end
		case end != nil:
			return out, err // more specific than the context's error
		}
	}
}

// once sends a request once, in its own turn.
func (c *client) once(ctx context.Context, build func() *rest.Request, out *response, read reader) error {
	return c.transport.usage.turn(ctx, c.transport.usage.limits.answer, func(ctx context.Context) error {
		result := build().MaxRetries(0).Do(ctx)
		if err := result.Error(); err != nil {
			return err
		}
		result.StatusCode(&out.code)
		for _, w := range result.Warnings() {
			out.warnings = append(out.warnings, w.Text)
		}
		body, err := result.Raw()
		if err != nil || read == nil {
			return err
		}
		err = read(body)
		if _, ours := errors.AsType[*nf.Error](err); err != nil && !ours && !isOversized(err) {
			return errGarbage
		}
		return err
	})
}

// retryAfter returns how long the API server, or the breaker, asks the client to
// wait before the next request; at most one hour for the API server.
func retryAfter(err error) time.Duration {
	const longest = time.Hour // longer waits are not plausible
	if s, ok := errors.AsType[*breaker.OpenError](err); ok {
		return s.After
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(seconds)*time.Second, longest)
}

// backoff returns the wait after the nth failure: doubled each time, with a
// random part so that clients that failed together do not retry together.
func backoff(n int) time.Duration {
	d := firstPause << (n - 1)
	return d/2 + rand.N(d)
}

// pause waits for d. It returns the context's error if the context ends first,
// or errReplaced if the transport is closed first.
func (c *client) pause(ctx context.Context, d time.Duration) error {
	if delay.For(ctx, d, c.transport.closed) {
		return errReplaced
	}
	return ctx.Err()
}

// get reads a whole object.
func (c *client) get(ctx context.Context, t target, out any) error {
	_, err := c.send(ctx, func() *rest.Request { return c.request(http.MethodGet, t) }, into(out))
	return err
}

// meta reads an object's metadata; found is false if the object does not exist.
func (c *client) meta(ctx context.Context, t target) (m *metav1.ObjectMeta, found bool, err error) {
	var out metav1.PartialObjectMetadata
	_, err = c.send(ctx, func() *rest.Request {
		return c.request(http.MethodGet, t).SetHeader("Accept", acceptMeta)
	}, into(&out))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &out.ObjectMeta, true, nil
}

// merge returns a request that changes an object by a JSON merge patch.
func (c *client) merge(t target, manager string, patch []byte) *rest.Request {
	return c.request(http.MethodPatch, t).SetHeader("Content-Type", string(types.MergePatchType)).Param("fieldManager", manager).Body(patch)
}

// edit changes an object's metadata. It returns a conflict if the object has
// changed since it was read.
func (c *client) edit(ctx context.Context, t target, was *metav1.ObjectMeta, metadata map[string]any) (*metav1.ObjectMeta, error) {
	metadata["uid"], metadata["resourceVersion"] = was.UID, was.ResourceVersion
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	var now metav1.PartialObjectMetadata
	_, err = c.send(ctx, func() *rest.Request {
		return c.merge(t, userAgent, body).SetHeader("Accept", acceptMeta)
	}, into(&now))
	if err != nil {
		return nil, err
	}
	return &now.ObjectMeta, nil
}

// deleteExact deletes an object if the preconditions hold. The deletion is in
// the foreground if the kind may have dependents. The object has the grace period, or its
// own one if that is nil.
func (c *client) deleteExact(ctx context.Context, t target, only metav1.Preconditions, grace *time.Duration) error {
	policy := metav1.DeletePropagationForeground
	if leaves[t.kind.GroupKind()] || orderly[t.kind.GroupKind()] {
		policy = metav1.DeletePropagationBackground
	}
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &only,
		PropagationPolicy: &policy,
	}
	if grace != nil {
		options.GracePeriodSeconds = new(int64(*grace / time.Second))
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, func() *rest.Request {
		return c.request(http.MethodDelete, t).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMeta).Body(body)
	}, nil)
	return err
}
