package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Objects in one page of a list. A page that turns out to be too large is asked
// for again with fewer.
const (
	metaPage   = 500
	objectPage = 100
)

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
	l := listing{place: p, query: q, limits: c.guard.share.limits, size: objectPage}
	if q.accept == acceptMetaList {
		l.size = metaPage
	}
	for restarts := 0; ; {
		var list metav1.ListMeta
		_, err := c.send(ctx, func() *rest.Request { return l.request(c.rest) }, func(body []byte) (err error) {
			if err = l.turn(body); err == nil {
				list, err = read(body)
			}
			return err
		})
		switch {
		case apierrors.IsResourceExpired(err) && l.next != "" && restarts < l.restarts:
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

// listing is a list on its way, page by page.
type listing struct {
	place
	query
	limits

	size  int    // objects in a page
	next  string // the page to ask for; empty: the first
	count int    // of pages that were read
	bytes int64  // of pages that were read
}

func (l *listing) request(client rest.Interface) *rest.Request {
	r := l.kind.at(client.Get(), l.namespace, "").Param("limit", fmt.Sprint(l.size))
	set(r, "labelSelector", l.labels)
	set(r, "fieldSelector", l.fields)
	set(r, "continue", l.next)
	if l.accept != "" {
		r.SetHeader("Accept", l.accept)
	}
	return r
}

// turn notes that a page was read, and returns an error for one too many.
func (l *listing) turn(body []byte) error {
	l.count++
	l.bytes += int64(len(body))
	switch {
	case l.count > l.pages:
		return &oversized{what: "a list of " + l.kind.Kind + " objects", limit: fmt.Sprintf("%d pages", l.pages)}
	case l.bytes > l.list:
		return &oversized{what: "a list of " + l.kind.Kind + " objects", limit: mebibytes(l.list)}
	}
	return nil
}

// shrink makes the pages smaller when one was too large.
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

// visit lists a place and calls do with the metadata of each of its objects.
// There are none of a kind that is not served any more. Restart is called when
// the list begins again.
func (c *Cluster) visit(ctx context.Context, p place, labels string, do func(*metav1.ObjectMeta), restart func()) error {
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
		c.forgetKinds()
		restart()
		return nil
	}
	return err
}

// pick lists a place and returns the metadata of the wanted objects, by Ref.Key.
// What else is there is not held in memory.
func (c *Cluster) pick(ctx context.Context, p place, labels string, wanted map[string]bool) (map[string]*metav1.ObjectMeta, error) {
	out := map[string]*metav1.ObjectMeta{}
	err := c.visit(ctx, p, labels, func(m *metav1.ObjectMeta) {
		if key := p.ref(m).Key(); wanted[key] {
			out[key] = m
		}
	}, func() { clear(out) })
	return out, err
}
