package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// stream keeps a view up to date with the objects of one place. client-go's
// reflector would do the same, but leaves goroutines behind that nobody can
// wait for, keeps the API server's refusals to itself, and logs on its own.
type stream struct {
	c      *Cluster
	view   *view
	place  place
	query  query
	aside  bool            // it only explains: what it cannot read is left out
	keys   []string        // of the targets that it tells about
	known  map[string]bool // keys of the objects that were there last
	synced bool            // it has been read once
}

// watchTime is how long the API server is asked to keep a watch open.
const watchTime = 8 * time.Minute

// run lists and watches until the context ends, or until it is clear that it
// will never work; that error goes to the view.
func (s *stream) run(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		version, err := s.list(ctx)
		if err == nil {
			var events int
			if events, err = s.watch(ctx, version); events > 0 {
				failures = 1
			}
		}
		if err != nil && s.hopeless(err) {
			if !s.aside && ctx.Err() == nil {
				s.view.end(fail(ctx, "watch", s.place.kind.Kind+" objects", err))
			}
			return
		}
		_ = pause(ctx, backoff(min(failures, attempts))) // the loop looks at the context itself
	}
}

// hopeless reports whether an error ends a watch: one that trying again does
// not mend, or any before the first success. A kind that is not served any more
// may come back.
func (s *stream) hopeless(err error) bool {
	return !s.synced || !transient(err) && !apierrors.IsNotFound(err)
}

// list reads the place into the view and returns the version it was read at.
func (s *stream) list(ctx context.Context) (string, error) {
	var items []unstructured.Unstructured
	read := func(body []byte) (metav1.ListMeta, error) {
		var page unstructured.UnstructuredList
		err := page.UnmarshalJSON(body)
		items = append(items, page.Items...)
		return metav1.ListMeta{Continue: page.GetContinue(), ResourceVersion: page.GetResourceVersion()}, err
	}
	version, err := s.c.pages(ctx, s.place, s.query, read, func() { items = nil })
	if apierrors.IsNotFound(err) {
		err = nil // the kind is not served any more, so there are none
	}
	if err != nil {
		return "", err
	}
	now := map[string]bool{}
	for i := range items {
		now[s.view.put(&items[i])] = true
	}
	for key := range s.known {
		if !now[key] {
			s.view.drop(key)
		}
	}
	s.known = now
	if !s.synced {
		s.synced = true
		s.view.look(s.keys)
	}
	return version, nil
}

// watch follows the place from a version on, until the API server wants it to
// be listed anew, and returns how many events came.
func (s *stream) watch(ctx context.Context, version string) (events int, err error) {
	seconds := int64(watchTime / time.Second)
	for ctx.Err() == nil {
		w, err := s.c.dynamic.Resource(s.place.kind.gvr()).Namespace(s.place.namespace).Watch(ctx, metav1.ListOptions{
			LabelSelector: s.query.labels, FieldSelector: s.query.fields,
			ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		})
		if err != nil {
			return events, err
		}
		n, last, err := s.follow(w)
		events += n
		if err != nil || n == 0 {
			return events, err
		}
		version = last
	}
	return events, nil
}

// follow takes what one watch tells. It returns when the watch has ended and
// its goroutine with it.
func (s *stream) follow(w watch.Interface) (events int, version string, err error) {
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until it is closed
		}
	}()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return events, version, apierrors.FromObject(e.Object)
		}
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		events, version = events+1, u.GetResourceVersion()
		switch e.Type {
		case watch.Added, watch.Modified:
			s.known[s.view.put(u)] = true
		case watch.Deleted:
			key := refOf(u).Key()
			delete(s.known, key)
			s.view.drop(key)
		}
	}
	return events, version, nil
}
