package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// limits are what one region may take of this process, whatever its API server
// sends. Answers are measured by weight: about the memory that they take while
// they are read and decoded.
type limits struct {
	turns   int64 // requests under way, watches apart
	watches int64 // watches under way
	large   int64 // turns that hold more than a small answer at the same time

	small  int64 // weight of an answer that every turn may hold
	answer int64 // weight of one answer
	survey int64 // weight of all that discovery reads
	event  int64 // weight of one event of a watch
	kept   int64 // weight of the objects that watches and lists keep
	pace   int64 // weight that is read in a second; twice as much at once after a rest

	pages    int   // of one list
	list     int64 // bytes of all its pages
	restarts int   // of a list whose pages expire before they are read
	versions int   // of API groups that are served
}

func regionLimits() limits {
	return limits{
		turns: 64, watches: 512, large: 3,
		small: 256 << 10, answer: 16 << 20, survey: 32 << 20, event: 8 << 20, kept: 64 << 20, pace: 48 << 20,
		pages: 2000, list: 256 << 20, restarts: 3, versions: 2000,
	}
}

// valueWeight is the weight of a value in JSON, in addition to its text.
const valueWeight = 64

// turnTime is how long a request waits for its turn.
const turnTime = 10 * time.Second

// answerTime is how long a whole answer may take that is not a watch.
const answerTime = 2 * time.Minute

// oversized is the error of an API server that sends more than is read.
type oversized struct {
	what   string
	limit  string
	answer bool // one answer is too large: it may have fewer objects
}

func (o *oversized) Error() string {
	return fmt.Sprintf("its API server sends more than is read: %s, and the limit is %s", o.what, o.limit)
}

func isOversized(err error) bool {
	_, is := errors.AsType[*oversized](err)
	return is
}

var (
	// errCrowded ends a request that did not get its turn.
	errCrowded = errors.New("too many requests to the cloud region are under way")

	// errSlow ends a request whose answer took too long as a whole.
	errSlow = fmt.Errorf("the answer was not complete after %v", answerTime)

	// errGarbage is an answer that no API server gives. It does not quote it: what
	// answers may be another server, and not meant to be read through this service.
	errGarbage = errors.New("the answer is not what a Kubernetes API server sends")
)

// share is what one region takes.
type share struct {
	limits

	turns   *semaphore.Weighted
	large   *semaphore.Weighted
	watches *semaphore.Weighted
	pace    *rate.Limiter
	kept    atomic.Int64
}

func newShare(l limits) *share {
	return &share{
		limits: l, turns: semaphore.NewWeighted(l.turns), large: semaphore.NewWeighted(l.large), watches: semaphore.NewWeighted(l.watches),
		pace: rate.NewLimiter(rate.Limit(l.pace), int(2*l.pace)),
	}
}

// turn is the leave to have a request under way, and to hold its answer until
// the turn ends. Requests that are made in one turn share its limit.
type turn struct {
	share  *share
	limit  int64
	weight atomic.Int64
	large  chan bool // holds one token: whether the turn is one of the large ones
}

type turnKey struct{}

// take waits for a turn. Requests with the context that it returns are made in
// it, until end is called.
func (s *share) take(ctx context.Context, limit int64) (_ context.Context, end func(), err error) {
	waiting, cancel := context.WithTimeoutCause(ctx, turnTime, errCrowded)
	defer cancel()
	if s.turns.Acquire(waiting, 1) != nil {
		return nil, nil, context.Cause(waiting)
	}
	t := &turn{share: s, limit: limit, large: make(chan bool, 1)}
	t.large <- false
	return context.WithValue(ctx, turnKey{}, t), t.end, nil
}

func (t *turn) end() {
	if <-t.large {
		t.share.large.Release(1)
	}
	t.share.turns.Release(1)
}

// read counts what has been read in the turn. It waits while the region reads
// too fast, and while others hold as many large answers as there may be.
func (t *turn) read(ctx context.Context, weight int64) error {
	sum := t.weight.Add(weight)
	if sum > t.limit {
		return &oversized{what: "an answer", limit: "about " + mebibytes(t.limit), answer: true}
	}
	large := <-t.large
	defer func() { t.large <- large }()
	if sum > t.share.small && !large {
		if err := t.share.large.Acquire(ctx, 1); err != nil {
			return context.Cause(ctx)
		}
		large = true
	}
	return t.share.wait(ctx, weight)
}

// wait waits until the region may have read so much.
func (s *share) wait(ctx context.Context, weight int64) error {
	if err := s.pace.WaitN(ctx, int(min(weight, s.limits.pace))); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errSlow // the context would end before that
	}
	return nil
}

// keep counts what is held for longer than a turn, until it is given back.
func (s *share) keep(weight int64) error {
	if s.kept.Add(weight) > s.limits.kept {
		s.kept.Add(-weight)
		return &oversized{what: "objects to be kept in memory", limit: "about " + mebibytes(s.limits.kept)}
	}
	return nil
}

func (s *share) give(weight int64) { s.kept.Add(-weight) }

// hoard is the objects of a list, which are kept until it is released.
type hoard struct {
	share   *share
	most    int // objects; 0: as many as there is room for
	items   []unstructured.Unstructured
	weights []int64
}

// read takes a page of the list.
func (h *hoard) read(body []byte) (metav1.ListMeta, error) {
	var page unstructured.UnstructuredList
	if err := page.UnmarshalJSON(body); err != nil {
		return metav1.ListMeta{}, err
	}
	weight := new(scale).weigh(body) / int64(max(len(page.Items), 1))
	for _, item := range page.Items {
		if err := h.share.keep(weight); err != nil {
			return metav1.ListMeta{}, err
		}
		h.items, h.weights = append(h.items, item), append(h.weights, weight)
	}
	if h.most > 0 && len(h.items) > h.most {
		return metav1.ListMeta{}, nf.E(nf.TooLarge, "list", "the objects", fmt.Errorf("there are more than %d", h.most))
	}
	return metav1.ListMeta{Continue: page.GetContinue(), ResourceVersion: page.GetResourceVersion()}, nil
}

// release lets go of the objects.
func (h *hoard) release() {
	for _, weight := range h.weights {
		h.share.give(weight)
	}
	h.items, h.weights = nil, nil
}

// feed is the body of a watch. It bounds how much one event has, and counts what
// is held of it while it is not complete.
type feed struct {
	ctx   context.Context //nolint:containedctx // it is that of the watch, and ends with it
	body  io.Reader
	share *share
	scale scale
	held  int64 // of the event that is being read
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	if n == 0 {
		return n, err
	}
	weight := f.scale.weigh(p[:n])
	if f.held+weight > f.share.event {
		return 0, &oversized{what: "an event of a watch", limit: "about " + mebibytes(f.share.event)}
	}
	if err := f.share.keep(weight); err != nil {
		return 0, err
	}
	f.held += weight
	if err := f.share.wait(f.ctx, weight); err != nil {
		return 0, err
	}
	return n, err
}

// next says that an event is complete.
func (f *feed) next() {
	f.share.give(f.held)
	f.held = 0
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// scale weighs JSON as it is read, piece by piece.
type scale struct{ inText, escaped bool }

func (s *scale) weigh(piece []byte) int64 {
	weight := 2 * int64(len(piece)) // it is read into one buffer, and copied into another
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
