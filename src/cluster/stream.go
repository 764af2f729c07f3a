package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
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
	aside  bool             // it only explains: what it cannot read is left out
	keys   []string         // of the targets that it tells about
	known  map[string]int64 // the weight of each object that was there last, by Ref.Key
	synced bool             // it has been read once
}

// watchTime is how long the API server is asked to keep a watch open.
const watchTime = 8 * time.Minute

// run lists and watches until the context ends, or until it is clear that it
// will never work; that error goes to the view.
func (s *stream) run(ctx context.Context) {
	defer s.release()
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
				s.view.end(s.c.fail(ctx, "watch", s.place.kind.Kind+" objects", err))
			}
			return
		}
		_ = s.c.pause(ctx, max(asked(err), backoff(min(failures, attempts)))) // the loop looks at the context itself
	}
}

// hopeless reports whether an error ends a watch: one that trying again does
// not mend, or any before the first success. A kind that is not served any more
// may come back, and so may a region from which requests are held back, or in
// whose place something else answers.
func (s *stream) hopeless(err error) bool {
	_, held := errors.AsType[*shut](err)
	passing := transient(err) || held || apierrors.IsNotFound(err) || errors.Is(err, errGarbage)
	return !s.synced || !passing
}

// release says that the objects are no longer held.
func (s *stream) release() {
	for _, weight := range s.known {
		s.c.guard.share.give(weight)
	}
	s.known = nil
}

// list reads the place into the view and returns the version it was read at.
func (s *stream) list(ctx context.Context) (string, error) {
	h := hoard{share: s.c.guard.share}
	version, err := s.c.pages(ctx, s.place, s.query, h.read, h.release)
	if apierrors.IsNotFound(err) {
		h.release() // the kind is not served any more, so there are none
		err = nil
	}
	if err != nil {
		h.release()
		return "", err
	}
	now := map[string]int64{}
	for i := range h.items {
		now[s.view.put(&h.items[i])] += h.weights[i]
	}
	for key, weight := range s.known {
		s.c.guard.share.give(weight)
		if _, still := now[key]; !still {
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
	for ctx.Err() == nil {
		n, last, err := s.follow(ctx, version)
		events += n
		if err != nil || n == 0 {
			return events, err
		}
		version = last
	}
	return events, nil
}

// follow takes what one watch tells, until it ends. client-go's own watcher
// would leave a goroutine behind, and log how the connection broke.
func (s *stream) follow(ctx context.Context, version string) (events int, last string, err error) {
	// The API server ends the watch by itself; one that does not may be dead.
	ctx, cancel := context.WithTimeout(ctx, watchTime+time.Minute)
	defer cancel()
	r := s.place.kind.at(s.c.rest.Get(), s.place.namespace, "").
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.Itoa(int(watchTime/time.Second)))
	set(r, "resourceVersion", version)
	set(r, "labelSelector", s.query.labels)
	set(r, "fieldSelector", s.query.fields)
	share := s.c.guard.share
	if err := share.watches.Acquire(ctx, 1); err != nil {
		return 0, "", context.Cause(ctx)
	}
	defer share.watches.Release(1)
	body, err := r.MaxRetries(0).Stream(ctx)
	if err != nil {
		return 0, "", err
	}
	defer body.Close()
	feed := &feed{ctx: ctx, body: body, share: share}
	defer feed.next()
	for decoder := json.NewDecoder(feed); ; events++ {
		var e event
		switch err := decoder.Decode(&e); {
		case isOversized(err):
			return events, last, err
		case err != nil:
			return events, last, nil // however it ended, what came before holds
		}
		feed.next()
		if last, err = s.take(e); err != nil {
			return events, last, err
		}
	}
}

// event is what a watch tells at a time.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// take hands an event to the view, and returns the version that it speaks of.
func (s *stream) take(e event) (version string, err error) {
	if e.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(e.Object, &status); err != nil {
			return "", errGarbage
		}
		return "", apierrors.FromObject(&status)
	}
	u := &unstructured.Unstructured{}
	if u.UnmarshalJSON(e.Object) != nil {
		return "", errGarbage // the error itself repeats what was sent
	}
	key := refOf(u).Key()
	switch e.Type {
	case watch.Added, watch.Modified:
		weight := new(scale).weigh(e.Object)
		if err := s.c.guard.share.keep(weight); err != nil {
			return "", err
		}
		s.c.guard.share.give(s.known[key])
		s.known[key] = weight
		s.view.put(u)
	case watch.Deleted:
		s.c.guard.share.give(s.known[key])
		delete(s.known, key)
		s.view.drop(key)
	}
	return u.GetResourceVersion(), nil
}
