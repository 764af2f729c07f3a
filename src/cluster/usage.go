package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// limits bound the resources of this process that one region can use, whatever
// its API server sends. Responses are measured by weight: about the memory in
// bytes that they take while they are read and decoded.
type limits struct {
	turns   int64 // concurrent requests, excluding watches
	watches int64 // concurrent watches
	large   int64 // concurrent turns that hold more than a small response

	small  int64 // weight of a response that every turn may hold
	answer int64 // weight of one response
	survey int64 // total weight of discovery
	event  int64 // weight of one watch event
	kept   int64 // weight of the objects held by watches and lists
	pace   int64 // weight read per second; bursts of twice that

	pages    int   // per list
	list     int64 // total bytes of a list's pages
	restarts int   // of a list whose continue token expires
	versions int   // of served API groups
}

func regionLimits() limits {
	return limits{
		turns: 64, watches: 512, large: 3,
		small: 256 << 10, answer: 16 << 20, survey: 32 << 20, event: 8 << 20, kept: 64 << 20, pace: 48 << 20,
		pages: 2000, list: 256 << 20, restarts: 3, versions: 2000,
	}
}

// valueWeight is the weight of a JSON value, in addition to its text.
const valueWeight = 64

// turnTime is the longest that a request waits for its turn.
const turnTime = 10 * time.Second

// answerTime is the longest that a whole response may take, except for a watch.
const answerTime = 2 * time.Minute

// oversized is the error of an API server that sends more than a limit.
type oversized struct {
	what   string
	limit  string
	answer bool // a single response is too large; smaller pages may help
}

func (o *oversized) Error() string {
	return fmt.Sprintf("its API server sends too much data: %s; the limit is %s", o.what, o.limit)
}

func isOversized(err error) bool {
	_, is := errors.AsType[*oversized](err)
	return is
}

var (
	// errCrowded ends a request that did not get its turn in time.
	errCrowded = errors.New("too many requests to the cloud region are running")

	// errSlow ends a request whose whole response took too long.
	errSlow = fmt.Errorf("the response was not complete after %v", answerTime)

	// errGarbage is the error of a response that no API server sends. It does
	// not quote the response, which may come from another server and must not be
	// readable through this service.
	errGarbage = errors.New("the response is not that of a Kubernetes API server")
)

// usage is the current use of one region's limits.
type usage struct {
	limits   limits
	turns    *semaphore.Weighted
	large    *semaphore.Weighted
	watches  *semaphore.Weighted
	pace     *rate.Limiter
	kept     atomic.Int64
	keptLean atomic.Int64 // the part of kept that lean streams use
}

func newUsage(l limits) *usage {
	return &usage{
		limits: l, turns: semaphore.NewWeighted(l.turns), large: semaphore.NewWeighted(l.large), watches: semaphore.NewWeighted(l.watches),
		pace: rate.NewLimiter(rate.Limit(l.pace), int(2*l.pace)),
	}
}

// turn is the permission to have a request in progress, and to hold its
// response until the turn ends. Requests made in one turn share its limit.
type turn struct {
	usage  *usage
	limit  int64
	weight atomic.Int64
	large  chan bool // holds one token: whether this turn counts as large
}

type turnKey struct{}

// begin waits for a turn. The caller makes the turn's requests with the returned
// context, and then calls end.
func (u *usage) begin(ctx context.Context, limit int64) (_ context.Context, end func(), err error) {
	if err := u.enter(ctx, u.turns); err != nil {
		return nil, nil, err
	}
	t := &turn{usage: u, limit: limit, large: make(chan bool, 1)}
	t.large <- false
	return context.WithValue(ctx, turnKey{}, t), t.end, nil
}

// turn runs requests in one turn; limit applies to all their responses
// together.
func (u *usage) turn(ctx context.Context, limit int64, requests func(context.Context) error) error {
	ctx, end, err := u.begin(ctx, limit)
	if err != nil {
		return err
	}
	defer end()
	return requests(ctx)
}

// enter acquires one of the places, waiting at most turnTime.
func (u *usage) enter(ctx context.Context, places *semaphore.Weighted) error {
	ctx, cancel := context.WithTimeoutCause(ctx, turnTime, errCrowded)
	defer cancel()
	if places.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (t *turn) end() {
	if <-t.large {
		t.usage.large.Release(1)
	}
	t.usage.turns.Release(1)
}

// add adds the weight of data read in the turn. It waits while the region
// exceeds its rate, and while the maximum number of large turns is reached.
func (t *turn) add(ctx context.Context, weight int64) error {
	sum := t.weight.Add(weight)
	if sum > t.limit {
		return &oversized{what: "an answer", limit: "about " + mebibytes(t.limit), answer: true}
	}
	large := <-t.large
	defer func() { t.large <- large }()
	if sum > t.usage.limits.small && !large {
		if err := t.usage.large.Acquire(ctx, 1); err != nil {
			return context.Cause(ctx)
		}
		large = true
	}
	return t.usage.throttle(ctx, weight)
}

// throttle waits until the rate limit allows the weight.
func (u *usage) throttle(ctx context.Context, weight int64) error {
	if err := u.pace.WaitN(ctx, int(min(weight, u.limits.pace))); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errSlow // the context would end first
	}
	return nil
}

// keep reserves weight that is held for longer than a turn, until give returns
// it.
func (u *usage) keep(weight int64) error {
	if u.kept.Add(weight) > u.limits.kept {
		u.kept.Add(-weight)
		return &oversized{what: "objects to be kept in memory", limit: "about " + mebibytes(u.limits.kept)}
	}
	return nil
}

// keepLean is keep for lean streams. Together they may use at most half of the
// weight, so that operations always have room.
func (u *usage) keepLean(weight int64) error {
	if u.keptLean.Add(weight) > u.limits.kept/2 {
		u.keptLean.Add(-weight)
		return &oversized{what: "statuses to be kept in memory", limit: "about " + mebibytes(u.limits.kept/2)}
	}
	err := u.keep(weight)
	if err != nil {
		u.keptLean.Add(-weight)
	}
	return err
}

func (u *usage) giveLean(weight int64) {
	u.keptLean.Add(-weight)
	u.give(weight)
}

func (u *usage) give(weight int64) { u.kept.Add(-weight) }

// objectList contains the objects of a list until they are released.
type objectList struct {
	usage   *usage
	most    int // maximum number of objects; 0: no limit
	items   []unstructured.Unstructured
	weights []int64
}

// add adds a page of the list.
func (h *objectList) add(body []byte) (metav1.ListMeta, error) {
	items, list, err := decodePage(body)
	if err != nil {
		return list, err
	}
	weight := new(scale).weigh(body) / int64(max(len(items), 1))
	for _, item := range items {
		if err := h.usage.keep(weight); err != nil {
			return list, err
		}
		h.items, h.weights = append(h.items, item), append(h.weights, weight)
	}
	if h.most > 0 && len(h.items) > h.most {
		return list, nf.E(nf.TooLarge, "list", "the objects", fmt.Errorf("there are more than %d", h.most))
	}
	return list, nil
}

// decodePage returns the objects and the metadata of one page of a list. Objects without a
// kind get that of the list. An UnstructuredList would decode each object twice.
func decodePage(body []byte) ([]unstructured.Unstructured, metav1.ListMeta, error) {
	var page struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Metadata   metav1.ListMeta  `json:"metadata"`
		Items      []map[string]any `json:"items"`
	}
	if json.Unmarshal(body, &page) != nil || page.Kind == "" {
		return nil, metav1.ListMeta{}, errGarbage // the original error quotes the response
	}
	items := make([]unstructured.Unstructured, len(page.Items))
	for i := range page.Items {
		items[i].Object = page.Items[i]
		if items[i].GetKind() == "" && items[i].GetAPIVersion() == "" {
			items[i].SetKind(strings.TrimSuffix(page.Kind, "List"))
			items[i].SetAPIVersion(page.APIVersion)
		}
	}
	return items, page.Metadata, nil
}

// release drops the objects and returns their weight.
func (h *objectList) release() {
	for _, weight := range h.weights {
		h.usage.give(weight)
	}
	h.items, h.weights = nil, nil
}

// feed is the body of a watch. It bounds the size of one event, and counts the
// weight of an incomplete event.
type feed struct {
	ctx   context.Context //nolint:containedctx // it is that of the watch, and ends with it
	body  io.Reader
	usage *usage
	scale scale
	held  int64 // weight of the event being read
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	if n == 0 {
		return n, err
	}
	weight := f.scale.weigh(p[:n])
	if f.held+weight > f.usage.limits.event {
		return 0, &oversized{what: "an event of a watch", limit: "about " + mebibytes(f.usage.limits.event)}
	}
	if err := f.usage.keep(weight); err != nil {
		return 0, err
	}
	f.held += weight
	if err := f.usage.throttle(f.ctx, weight); err != nil {
		return 0, err
	}
	return n, err
}

// next ends an event, and returns its weight.
func (f *feed) next() int64 {
	weight := f.held
	f.usage.give(weight)
	f.held = 0
	return weight
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// scale computes the weight of JSON as it is read, piece by piece.
type scale struct{ inText, escaped bool }

func (s *scale) weigh(piece []byte) int64 {
	weight := 2 * int64(len(piece)) // once in the read buffer, once as a copy
	for _, c := range piece {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inText:
			s.escaped, s.inText = c == '\\', c != '"'
		case c == '"':
			s.inText = true
		case c == '{', c == '[', c == ',':
			weight += valueWeight
		}
	}
	return weight
}

// weightOf returns the weight of a decoded JSON value, which is about that of its text.
func weightOf(value any) int64 {
	const quotes, field, other = 2, 4, 4 // bytes of JSON in addition to a text, of a key, and of another value
	switch v := value.(type) {
	case map[string]any:
		weight := valueWeight * int64(max(len(v), 1))
		for key, item := range v {
			weight += 2*int64(len(key)+field) + weightOf(item)
		}
		return weight
	case []any:
		weight := valueWeight * int64(max(len(v), 1))
		for _, item := range v {
			weight += weightOf(item)
		}
		return weight
	case string:
		return 2 * int64(len(v)+quotes)
	}
	return 2 * other
}
