package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// What the API server is asked to answer with: the metadata alone, which is
// small, where nothing else is needed.
const (
	acceptMeta     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

const (
	attempts   = 6                      // of one request, the first included
	firstPause = 100 * time.Millisecond // before the second; doubled for each further one
	longestAsk = 5 * time.Second        // that an API server is granted when it asks for patience; more is its answer
)

// reply is an API server's answer to a request that it granted.
type reply struct {
	code     int
	warnings []string
	repeated bool // an earlier attempt may have been carried out, its answer lost
}

// reader takes the body of an answer. The body is not to be used after it has
// returned.
type reader func(body []byte) error

// into returns a reader that decodes JSON.
func into(out any) reader {
	return func(body []byte) error { return json.Unmarshal(body, out) }
}

// send sends a request, which must be harmless to repeat, and repeats it while
// the API server asks for a little patience or cannot be reached. Read takes the
// answer; nil for one that nobody needs. The error is not translated.
func (c *Cluster) send(ctx context.Context, build func() *rest.Request, read reader) (reply, error) {
	return c.sendDespite(ctx, func(error) bool { return false }, build, read)
}

// sendDespite is send for a request that is worth repeating after further
// errors.
func (c *Cluster) sendDespite(ctx context.Context, passing func(error) bool, build func() *rest.Request, read reader) (reply, error) {
	var out reply
	for n := 1; ; n++ {
		err := c.once(ctx, build, &out, read)
		if err == nil {
			return out, nil
		}
		if n == attempts || ctx.Err() != nil || !transient(err) && !passing(err) || asked(err) > longestAsk {
			return out, err
		}
		out.repeated = out.repeated || transient(err) && !apierrors.IsTooManyRequests(err)
		switch end := c.pause(ctx, max(asked(err), backoff(n))); {
		case errors.Is(end, errReplaced):
			return out, end
		case end != nil:
			return out, err // which says more than that the context has ended
		}
	}
}

// once sends a request once, in a turn of its own.
func (c *Cluster) once(ctx context.Context, build func() *rest.Request, out *reply, read reader) error {
	return c.turn(ctx, c.guard.share.answer, func(ctx context.Context) error {
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

// turn makes requests in one turn, whose answers have a limit all together.
func (c *Cluster) turn(ctx context.Context, limit int64, requests func(context.Context) error) error {
	ctx, end, err := c.guard.share.take(ctx, limit)
	if err != nil {
		return err
	}
	defer end()
	return requests(ctx)
}

// asked is how long an API server, or the breaker before it, wants us to wait
// before we come again.
func asked(err error) time.Duration {
	const longest = time.Hour // what is more is nonsense
	if s, ok := errors.AsType[*shut](err); ok {
		return s.after
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(seconds)*time.Second, longest)
}

// backoff is how long to wait after the nth failure: twice as long each time,
// with a random part so that those who failed together do not come together.
func backoff(n int) time.Duration {
	d := firstPause << (n - 1)
	return d/2 + rand.N(d)
}

// pause waits. It returns the context's error if that ends first, or
// errReplaced if the cluster does.
func (c *Cluster) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.guard.gone:
		return errReplaced
	case <-timer.C:
		return nil
	}
}

// meta reads an object's metadata; found is false when there is no such object.
func (c *Cluster) meta(ctx context.Context, k kind, namespace, name string) (m *metav1.ObjectMeta, found bool, err error) {
	var out metav1.PartialObjectMetadata
	_, err = c.send(ctx, func() *rest.Request {
		return k.at(c.rest.Get(), namespace, name).SetHeader("Accept", acceptMeta)
	}, into(&out))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &out.ObjectMeta, true, nil
}

// edit changes an object's metadata, if the object is as it was.
func (c *Cluster) edit(ctx context.Context, t target, was *metav1.ObjectMeta, metadata map[string]any) (*metav1.ObjectMeta, error) {
	metadata["uid"], metadata["resourceVersion"] = was.UID, was.ResourceVersion
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	var now metav1.PartialObjectMetadata
	_, err = c.send(ctx, func() *rest.Request {
		return t.kind.at(c.rest.Patch(types.MergePatchType), t.ref.Namespace, t.ref.Name).
			Param("fieldManager", userAgent).SetHeader("Accept", acceptMeta).Body(body)
	}, into(&now))
	if err != nil {
		return nil, err
	}
	return &now.ObjectMeta, nil
}
