package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The number of objects per page of a list. A page that is too large is
// requested again with fewer objects.
const (
	metaPage   = 500
	objectPage = 100
)

// scope is a kind in one namespace, or in the whole cluster.
type scope struct {
	kind      kind
	namespace string // empty for a cluster-scoped kind
}

func (k kind) in(namespace string) scope {
	if !k.namespaced {
		namespace = ""
	}
	return scope{k, namespace}
}

// key identifies a scope; scope is not comparable because kind is not.
func (p scope) key() string {
	return strings.Join([]string{p.kind.Group, p.kind.Version, p.kind.Kind, p.namespace}, "/")
}

// query selects objects of a scope; the zero value selects all.
type query struct {
	labels string
	fields string
	accept string // the media type; empty for whole objects
}

// pages lists a scope page by page. It passes each page to read, which returns
// the page's list metadata. If the continue token expires, it calls restart and
// starts the list again. It returns the resource version of the list.
func (c *client) pages(ctx context.Context, p scope, q query, read func(body []byte) (metav1.ListMeta, error), restart func()) (string, error) {
	l := listing{scope: p, query: q, limits: c.transport.usage.limits, size: objectPage}
	if q.accept == acceptMetaList {
		l.size = metaPage
	}
	for restarts := 0; ; {
		var list metav1.ListMeta
		_, err := c.send(ctx, func() *rest.Request { return l.request(c) }, func(body []byte) (err error) {
			if err = l.count(body); err == nil {
				list, err = read(body)
			}
			return err
		})
		switch {
		case apierrors.IsResourceExpired(err) && l.next != "" && restarts < l.limits.restarts:
			restart()
			restarts++
			l.next = ""
			continue
		case isOversized(err) && l.shrink(err):
			continue
		case err != nil:
			return "", err
		}
		if l.next = list.Continue; l.next == "" {
			return list.ResourceVersion, nil
		}
	}
}

// listing is the state of a paged list.
type listing struct {
	scope  scope
	query  query
	limits limits

	size  int    // objects in a page
	next  string // the continue token; empty for the first page
	read  int    // of pages that were read
	bytes int64  // of pages that were read
}

func (l *listing) request(c *client) *rest.Request {
	r := l.scope.kind.at(c.verb(http.MethodGet), l.scope.namespace, "").Param("limit", fmt.Sprint(l.size))
	set(r, "labelSelector", l.query.labels)
	set(r, "fieldSelector", l.query.fields)
	set(r, "continue", l.next)
	if l.query.accept != "" {
		r.SetHeader("Accept", l.query.accept)
	}
	return r
}

// count adds a page, and returns an error if the list exceeds its limits.
func (l *listing) count(body []byte) error {
	l.read++
	l.bytes += int64(len(body))
	switch {
	case l.read > l.limits.pages:
		return &oversized{what: "a list of " + l.scope.kind.Kind + " objects", limit: fmt.Sprintf("%d pages", l.limits.pages)}
	case l.bytes > l.limits.list:
		return &oversized{what: "a list of " + l.scope.kind.Kind + " objects", limit: mebibytes(l.limits.list)}
	}
	return nil
}

// shrink reduces the page size after a page was too large, and reports whether
// it could.
func (l *listing) shrink(err error) bool {
	const step = 8
	o, _ := errors.AsType[*oversized](err)
	if !o.answer || l.size == 1 {
		return false
	}
	l.size = max(l.size/step, 1)
	return true
}

func set(r *rest.Request, name, value string) {
	if value != "" {
		r.Param(name, value)
	}
}

// visit lists a scope and calls do with the metadata of each object. If do keeps it, the
// rest of the page stays in memory, too. A kind that is no longer served has no objects.
// Restart is called when the list starts again.
func (c *client) visit(ctx context.Context, p scope, labels string, do func(*metav1.ObjectMeta), restart func()) error {
	read := func(body []byte) (metav1.ListMeta, error) {
		var page metav1.PartialObjectMetadataList
		err := json.Unmarshal(body, &page)
		for i := range page.Items {
			do(&page.Items[i].ObjectMeta)
		}
		return page.ListMeta, err
	}
	_, err := c.pages(ctx, p, query{labels: labels, accept: acceptMetaList}, read, restart)
	if apierrors.IsNotFound(err) {
		c.apis.forget()
		restart()
		return nil
	}
	return err
}

// pick lists a scope and returns the metadata of the wanted objects, by
// Ref.Key. Other objects are not held in memory.
func (c *client) pick(ctx context.Context, p scope, labels string, wanted map[string]bool) (map[string]*metav1.ObjectMeta, error) {
	out := map[string]*metav1.ObjectMeta{}
	err := c.visit(ctx, p, labels, func(m *metav1.ObjectMeta) {
		if key := p.ref(m).Key(); wanted[key] {
			out[key] = new(*m) // m would keep its page in memory
		}
	}, func() { clear(out) })
	return out, err
}

// whole lists the complete objects of a scope. The caller must release them.
// There are none after an error, and none of a kind that is no longer served.
func (c *client) whole(ctx context.Context, p scope, q query) (objectList, error) {
	h := objectList{usage: c.transport.usage, most: mostFound}
	_, err := c.pages(ctx, p, q, h.add, h.release)
	if err != nil {
		h.release()
	}
	if apierrors.IsNotFound(err) {
		c.apis.forget()
		err = nil
	}
	return h, err
}
