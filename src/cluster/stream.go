package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stream keeps a view up to date with the objects of one scope. client-go's
// reflector would do the same, but it leaves goroutines that cannot be waited
// for, does not return the API server's errors, and logs on its own.
type stream struct {
	client *client
	view   sink
	scope  scope
	query  query
	aside  bool             // it only explains: read errors are ignored
	keys   []string         // Ref.Key of the targets that it reports
	known  map[string]int64 // the weight of each existing object, by Ref.Key
	synced bool             // the first state is complete

	initial map[string]bool // the objects that a watch has sent so far of the present state, by Ref.Key; nil: it is complete
	listing bool            // a watch has not sent the whole present state

	unserved bool // the kind was not served at the last list
	lasting  bool // it ends when the kind is no longer served, not when the breaker opens; others end if another version is served, or the breaker opens
	lean     bool // the sink keeps almost nothing of an object; a failed list ends the stream
}

// sink receives what a stream reads.
type sink interface {
	put(u *unstructured.Unstructured) (key string)
	drop(key string)
	markChanged(keys []string)
	end(err error)
}

// watchTime is the timeout of a watch that the API server is asked for.
const watchTime = 8 * time.Minute

// shortWatch is the age below which several watches that end count as a fault of the server.
const shortWatch = time.Second

// initialTime is how long a watch may take to send the present state.
const initialTime = 10 * time.Second

// run reads the present state and watches until the context ends or a permanent
// error occurs. It passes a permanent error to the view.
func (s *stream) run(ctx context.Context) {
	defer s.release()
	for failures := 1; ctx.Err() == nil; failures++ {
		version, err := s.begin(ctx)
		blind := err != nil && (s.lean || s.unserved)
		if err == nil {
			var events int
			if events, err = s.watch(ctx, version); events > 0 {
				failures = 1
			}
			if s.initial != nil {
				s.fallBack(err)
				continue
			}
		}
		if blind || err != nil && s.isFatal(err) {
			if !s.aside && ctx.Err() == nil && !s.client.transport.isClosed() { // the caller reports both
				s.view.end(s.client.region.fail(ctx, "watch", s.scope.kind.Kind+" objects", err))
			}
			return
		}
		_ = s.client.pause(ctx, max(retryAfter(err), backoff(min(failures, attempts)))) // the loop checks the context itself
	}
}

// isFatal reports whether an error ends the stream: any error before the first list, and after
// that one that a retry does not change. A kind may return, and so may a busy region, or one whose
// address another server answers. An open breaker ends a watch of an operation, which records it.
func (s *stream) isFatal(err error) bool {
	if _, held := errors.AsType[*breaker.OpenError](err); held {
		return !s.synced || !s.lasting && !s.lean && !s.aside
	}
	busy := errors.Is(err, errCrowded) || errors.Is(err, errSlow)
	passing := transient(err) || busy || apierrors.IsResourceExpired(err) || apierrors.IsNotFound(err)
	return !s.synced || !passing && !errors.Is(err, errGarbage)
}

// release returns the weight of the objects.
func (s *stream) release() {
	for _, weight := range s.known {
		s.give(weight)
	}
	s.known = nil
}

// begin returns the resource version from which to watch. It lists the scope,
// unless the watch will send the present state first (version is empty).
func (s *stream) begin(ctx context.Context) (version string, err error) {
	if s.lean || s.listing || s.client.answers.listing.Load() {
		version, err = s.read(ctx)
		if s.unserved && !s.lasting && !s.lean {
			err = s.vanish(ctx)
		}
		return version, err
	}
	s.initial = map[string]bool{}
	return "", nil
}

// fallBack makes the stream list before it watches, because a watch ended before it
// had sent the present state. Other streams do so, too, if the API server does not
// support such a watch: it is older than 1.32, or its feature WatchList is off.
func (s *stream) fallBack(err error) {
	s.initial, s.listing = nil, true
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		s.client.answers.listing.Store(true)
	}
}

// read lists the scope into the view and returns its resource version.
func (s *stream) read(ctx context.Context) (string, error) {
	if s.lean {
		return s.readLean(ctx)
	}
	h := objectList{usage: s.client.transport.usage}
	version, err := s.client.pages(ctx, s.scope, s.query, h.add, h.release)
	if s.noteServed(err); err != nil {
		h.release()
		return "", err
	}
	now := map[string]bool{}
	for i := range h.items {
		now[s.hold(&h.items[i], h.weights[i])] = true
	}
	s.complete(now)
	return version, nil
}

// noteServed notes whether the kind was served at a list. If it is no longer served,
// the kinds of the region are read again at their next use: another version may be served.
func (s *stream) noteServed(err error) {
	was := s.unserved
	if s.unserved = apierrors.IsNotFound(err); s.unserved && !was {
		s.client.apis.forget()
	}
}

// hold passes an object to the view. Its weight has been reserved.
func (s *stream) hold(u *unstructured.Unstructured, weight int64) (key string) {
	key = s.view.put(u)
	s.give(s.known[key])
	s.known[key] = weight
	return key
}

// drop removes an object from the view, and releases its weight.
func (s *stream) drop(key string) {
	s.give(s.known[key])
	delete(s.known, key)
	s.view.drop(key)
}

// complete ends the read of the present state: objects that are not in now are
// dropped.
func (s *stream) complete(now map[string]bool) {
	for key := range s.known {
		if !now[key] {
			s.drop(key)
		}
	}
	if !s.synced {
		s.synced = true
		s.view.markChanged(s.keys)
	}
}

func (s *stream) keep(weight int64) error {
	if s.lean {
		return s.client.transport.usage.keepLean(weight)
	}
	return s.client.transport.usage.keep(weight)
}

func (s *stream) give(weight int64) {
	if s.lean {
		s.client.transport.usage.giveLean(weight)
		return
	}
	s.client.transport.usage.give(weight)
}

// leanWeight is the approximate number of bytes kept per object in a lean
// stream.
const leanWeight = 320

// longestNames is the maximum total length of namespace, name and owner in a
// lean stream, as leanWeight does not count them. Kubernetes allows about a
// third of it.
const longestNames = 1 << 10

// acceptable returns an error for an object of a lean stream whose names are
// longer than any API server allows.
func (s *stream) acceptable(u *unstructured.Unstructured) error {
	if s.lean && len(u.GetNamespace())+len(u.GetName())+len(u.GetLabels()[nf.OwnerLabel]) > longestNames {
		return errGarbage
	}
	return nil
}

// readLean is read for a lean stream: it releases each page before it reads the
// next one.
func (s *stream) readLean(ctx context.Context) (string, error) {
	now := map[string]bool{}
	forget := func(drop bool) {
		for key := range now {
			if s.known[key] != 0 {
				continue // complete drops it if it no longer exists
			}
			s.give(leanWeight)
			if drop {
				s.view.drop(key)
			}
		}
		clear(now)
	}
	version, err := s.client.pages(ctx, s.scope, s.query, func(body []byte) (metav1.ListMeta, error) {
		items, list, err := decodePage(body)
		for i := 0; i < len(items) && err == nil; i++ {
			err = s.addLean(&items[i], now)
		}
		return list, err
	}, func() { forget(true) })
	if s.noteServed(err); err != nil {
		forget(false)
		return "", err
	}
	for key := range now {
		s.known[key] = leanWeight // it is reserved already
	}
	s.complete(now)
	return version, nil
}

// addLean adds one object of a list, and reserves weight for it if it is new.
func (s *stream) addLean(u *unstructured.Unstructured, now map[string]bool) error {
	if err := s.acceptable(u); err != nil {
		return err
	}
	key := s.view.put(u)
	if !now[key] && s.known[key] == 0 {
		if err := s.keep(leanWeight); err != nil {
			return err
		}
	}
	now[key] = true
	return nil
}

// watch watches the scope from a resource version, until a new list is
// necessary, and returns the number of events.
func (s *stream) watch(ctx context.Context, version string) (events int, err error) {
	for short := 0; ctx.Err() == nil; {
		began := time.Now()
		n, last, err := s.watchOnce(ctx, version)
		events += n
		if err != nil || n == 0 || s.initial != nil {
			return events, err
		}
		version = last
		if short++; time.Since(began) >= shortWatch {
			short = 0
		} else if short > 1 {
			_ = s.client.pause(ctx, backoff(min(short, attempts))) // the loop checks the context itself
		}
	}
	return events, nil
}

// watchOnce reads one watch until it ends. It returns errCrowded if the region has reached its
// limit of watches. client-go's watcher would leave a goroutine, and log broken connections.
func (s *stream) watchOnce(ctx context.Context, version string) (events int, last string, err error) {
	share := s.client.transport.usage
	if err := share.enter(ctx, share.watches); err != nil {
		return 0, "", err
	}
	defer share.watches.Release(1)
	// The API server ends the watch itself; if it does not, it may be dead.
	ctx, cancel := context.WithTimeout(ctx, watchTime+time.Minute)
	defer cancel()
	late := time.AfterFunc(initialTime, cancel)
	defer late.Stop()
	if s.initial == nil {
		late.Stop()
	}
	body, err := s.watchRequest(version).MaxRetries(0).Stream(ctx)
	if err != nil {
		return 0, "", err
	}
	defer body.Close()
	feed := &feed{ctx: ctx, body: body, usage: share}
	defer feed.next()
	source := io.Reader(feed)
	for decoder := kjson.NewDecoderCaseSensitivePreserveInts(source); ; events++ {
		var e event
		switch err := decoder.Decode(&e); {
		case isOversized(err):
			return events, last, err
		case err != nil:
			return events, last, nil // however the watch ended, the events before are valid
		}
		if feed.next() > share.limits.small { // a decoder keeps its largest buffer
			source = io.MultiReader(decoder.Buffered(), source)
			decoder = kjson.NewDecoderCaseSensitivePreserveInts(source)
		}
		if last, err = s.handle(e); err != nil {
			return events, last, err
		}
		if s.initial == nil {
			late.Stop()
		}
	}
}

// watchRequest builds the request for a watch of the scope from a resource
// version.
func (s *stream) watchRequest(version string) *rest.Request {
	r := s.scope.kind.at(s.client.verb(http.MethodGet), s.scope.namespace, "").
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.Itoa(int(watchTime/time.Second)))
	if s.initial != nil {
		r.Param("sendInitialEvents", "true").Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	set(r, "resourceVersion", version)
	set(r, "labelSelector", s.query.labels)
	set(r, "fieldSelector", s.query.fields)
	if s.query.accept != "" {
		r.SetHeader("Accept", acceptMeta)
	}
	return r
}

// event is one event of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"` // decoded together with the event
}

// handle passes an event to the view, and returns its resource version.
func (s *stream) handle(e event) (version string, err error) {
	object, _ := e.Object.(map[string]any)
	u := &unstructured.Unstructured{Object: object}
	switch {
	case object != nil && e.Type == watch.Error:
		var status metav1.Status
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object, &status) != nil {
			return "", errGarbage
		}
		return "", apierrors.FromObject(&status)
	case u.GetKind() == "":
		return "", errGarbage
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		if err := s.acceptable(u); err != nil {
			return "", err
		}
		weight := int64(leanWeight)
		if !s.lean {
			weight = weightOf(object)
		}
		if err := s.keep(weight); err != nil {
			return "", err
		}
		if key := s.hold(u, weight); s.initial != nil {
			s.initial[key] = true
		}
	case watch.Deleted:
		key := s.scope.ref(&metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName()}).Key()
		delete(s.initial, key)
		s.drop(key)
	case watch.Bookmark:
		if s.initial != nil && u.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			s.complete(s.initial)
			s.initial = nil
		}
	}
	return u.GetResourceVersion(), nil
}
