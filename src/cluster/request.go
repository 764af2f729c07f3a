package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	longestAsk = 30 * time.Second       // that an API server is granted when it asks for patience
	pageSize   = 500                    // objects in one answer to a list
)

// reply is an API server's answer to a request that it granted.
type reply struct {
	code     int
	body     []byte
	warnings []string
	repeated bool // an earlier attempt may have been carried out, its answer lost
}

// into decodes the reply's body.
func (r reply) into(out any) error {
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("cannot read the API server's answer: %w", err)
	}
	return nil
}

// send sends a request, which must be harmless to repeat, and repeats it while
// the API server asks for patience or cannot be reached. Its error is not
// translated.
func (c *Cluster) send(ctx context.Context, build func() *rest.Request) (reply, error) {
	return c.sendDespite(ctx, func(error) bool { return false }, build)
}

// sendDespite is send for a request that is worth repeating after further
// errors.
func (c *Cluster) sendDespite(ctx context.Context, passing func(error) bool, build func() *rest.Request) (reply, error) {
	var out reply
	for n := 1; ; n++ {
		result := build().MaxRetries(0).Do(ctx)
		err := result.Error()
		if err == nil {
			result.StatusCode(&out.code)
			out.body, err = result.Raw()
			for _, w := range result.Warnings() {
				out.warnings = append(out.warnings, w.Text)
			}
			return out, err
		}
		if n == attempts || ctx.Err() != nil || !transient(err) && !passing(err) {
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

// asked is how long an API server, or the breaker before it, wants us to wait
// before we come again.
func asked(err error) time.Duration {
	if s, ok := errors.AsType[*shut](err); ok {
		return s.after
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(seconds)*time.Second, longestAsk)
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
	got, err := c.send(ctx, func() *rest.Request {
		return c.rest.Get().AbsPath(k.path(namespace, name)...).SetHeader("Accept", acceptMeta)
	})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var out metav1.PartialObjectMetadata
	if err := got.into(&out); err != nil {
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
	got, err := c.send(ctx, func() *rest.Request {
		return c.rest.Patch(types.MergePatchType).AbsPath(t.kind.path(t.ref.Namespace, t.ref.Name)...).
			Param("fieldManager", userAgent).SetHeader("Accept", acceptMeta).Body(body)
	})
	if err != nil {
		return nil, err
	}
	var now metav1.PartialObjectMetadata
	return &now.ObjectMeta, got.into(&now)
}

// place is all objects of a kind in a namespace, or in the whole cluster.
type place struct {
	kind      kind
	namespace string // empty for a cluster-scoped kind
}

func (k kind) in(namespace string) place {
	if !k.namespaced {
		namespace = ""
	}
	return place{k, namespace}
}

// key names a place; kind is not comparable.
func (p place) key() string {
	return strings.Join([]string{p.kind.Group, p.kind.Version, p.kind.Kind, p.namespace}, "/")
}

// query selects objects of a place; the zero value selects all.
type query struct {
	labels string
	fields string
	accept string // the media type; empty for whole objects
}

// pages lists a place page by page. Each page is handed to read, which returns
// the page's list metadata; restart is called when the pages that were read
// have expired and the list begins again. It returns the resource version that
// the list speaks of.
func (c *Cluster) pages(ctx context.Context, p place, q query, read func(body []byte) (metav1.ListMeta, error), restart func()) (string, error) {
	limit, next := pageSize, ""
	for {
		got, err := c.send(ctx, func() *rest.Request {
			r := c.rest.Get().AbsPath(p.kind.path(p.namespace, "")...)
			set(r, "labelSelector", q.labels)
			set(r, "fieldSelector", q.fields)
			set(r, "continue", next)
			if limit > 0 {
				r.Param("limit", fmt.Sprint(limit))
			}
			if q.accept != "" {
				r.SetHeader("Accept", q.accept)
			}
			return r
		})
		if apierrors.IsResourceExpired(err) && next != "" {
			restart()
			limit, next = 0, ""
			continue
		}
		if err != nil {
			return "", err
		}
		list, err := read(got.body)
		if err != nil {
			return "", fmt.Errorf("cannot read the API server's answer: %w", err)
		}
		if next = list.Continue; next == "" {
			return list.ResourceVersion, nil
		}
	}
}

func set(r *rest.Request, name, value string) {
	if value != "" {
		r.Param(name, value)
	}
}

// metas lists the metadata of a place's objects. There are none of a kind that
// is not served any more.
func (c *Cluster) metas(ctx context.Context, p place, labels string) ([]metav1.ObjectMeta, error) {
	var out []metav1.ObjectMeta
	read := func(body []byte) (metav1.ListMeta, error) {
		var page metav1.PartialObjectMetadataList
		err := json.Unmarshal(body, &page)
		for i := range page.Items {
			out = append(out, page.Items[i].ObjectMeta)
		}
		return page.ListMeta, err
	}
	_, err := c.pages(ctx, p, query{labels: labels, accept: acceptMetaList}, read, func() { out = nil })
	if apierrors.IsNotFound(err) {
		c.forgetKinds()
		return nil, nil
	}
	return out, err
}
