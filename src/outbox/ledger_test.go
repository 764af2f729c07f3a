package outbox_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// account is a record of the ledger: a value that is reported when it changes.
type account struct {
	Name     string `json:"name"`
	Value    string `json:"value"`    // empty: requests are put by others
	Reported string `json:"reported"` // the last value that a request was put for
	Number   int    `json:"number"`   // of that request
	URL      string `json:"url"`      // where pending requests go; empty: where they were put for
}

var errMoved = errors.New("another replica has reported it")

// ledger is a source of requests that reports values with PUT. It stores the
// request before its own record.
type ledger struct {
	kv       store.KV
	accounts store.Table[account]
	box      *outbox.Outbox
	signals  sync.Map // delay.Signal, by the key of its queue
}

var _ outbox.Source = (*ledger)(nil)

// Queues implements outbox.Source.
func (l *ledger) Queues(ctx context.Context) iter.Seq2[outbox.Queue, error] {
	return func(yield func(outbox.Queue, error) bool) {
		for a, err := range l.accounts.All(ctx, "") {
			if err != nil {
				yield(outbox.Queue{}, err)
				return
			}
			if !yield(outbox.Queue{Key: a.Name, Shard: a.Name[:1], Name: a.Name}, nil) {
				return
			}
		}
	}
}

// Serve implements outbox.Source.
func (l *ledger) Serve(ctx context.Context, s *outbox.Shard) {
	s.Run(ctx, func(q outbox.Queue, wakeCh delay.Signal) outbox.Feed {
		l.signals.Store(q.Key, wakeCh)
		return reporter{l, q.Key}
	})
}

// Collect implements outbox.Source.
func (*ledger) Collect(context.Context) error { return nil }

// reporter is the feed of one account.
type reporter struct {
	*ledger

	name string
}

// Next implements outbox.Feed.
func (r reporter) Next(ctx context.Context) (time.Duration, error) {
	a, err := r.accounts.Get(ctx, r.name)
	if nf.KindOf(err) == nf.NotFound {
		return 0, outbox.ErrOver
	}
	if err != nil || a.Value == "" || a.Value == a.Reported {
		return time.Hour, err
	}
	d, err := r.box.Put(ctx, report(r.name, a.Number+1, a.Value))
	if err != nil {
		return 0, err
	}
	return 0, r.reported(ctx, d)
}

// reported records that a request was put.
func (r reporter) reported(ctx context.Context, d outbox.Delivery) error {
	_, err := r.accounts.Update(ctx, r.name, func(a *account) error {
		if a.Number != d.Number-1 {
			return errMoved
		}
		a.Reported, a.Number = string(d.Body), d.Number
		return nil
	})
	return err
}

// Prepare implements outbox.Feed.
func (r reporter) Prepare(ctx context.Context, d outbox.Delivery) (outbox.Request, error) {
	a, err := r.accounts.Get(ctx, r.name)
	if err == nil && a.Value != "" && d.Number > a.Number {
		err = r.reported(ctx, d)
	}
	if a.URL != "" {
		d.URL = a.URL
	}
	return d.Request, err
}

// Sent implements outbox.Feed.
func (reporter) Sent(context.Context, outbox.Delivery) error { return nil }

// Forget implements outbox.Feed.
func (reporter) Forget() {}

// Close implements outbox.Feed.
func (reporter) Close() {}

func report(name string, number int, value string) outbox.Request {
	return outbox.Request{Key: name, Number: number, Method: http.MethodPut, URL: "http://inventory.example/" + name, Body: []byte(value)}
}

// receiver keeps what is sent, and answers as it is told.
type receiver struct {
	mu     sync.Mutex
	sent   []outbox.Request
	answer func(r outbox.Request) (int, error)
}

// Send implements outbox.Send.
func (rc *receiver) Send(_ context.Context, r outbox.Request) (int, error) {
	rc.mu.Lock()
	rc.sent = append(rc.sent, r)
	answer := rc.answer
	rc.mu.Unlock()
	if answer == nil {
		return http.StatusNoContent, nil
	}
	return answer(r)
}

func (rc *receiver) answers(answer func(r outbox.Request) (int, error)) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.answer = answer
}

// take returns what was sent since the last time: "a=1".
func (rc *receiver) take() []string {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	out := []string{}
	for _, r := range rc.sent {
		out = append(out, r.Key+"="+string(r.Body))
	}
	rc.sent = nil
	return out
}

var errDown = errors.New("connection refused")

func down(outbox.Request) (int, error) { return 0, errDown }

// stage is a store and a receiver, in virtual time.
type stage struct {
	t  *testing.T
	kv store.KV
	to *receiver
}

func play(t *testing.T, act func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { act(t, &stage{t, memory.New(), &receiver{}}) })
}

// ledger returns a ledger with its outbox, which does not run yet.
func (s *stage) ledger(edit func(*outbox.Config)) *ledger {
	s.t.Helper()
	return s.create(edit, func(l *ledger) outbox.Source { return l })
}

// noun returns a ledger whose outbox has no source.
func (s *stage) noun(edit func(*outbox.Config)) *ledger {
	s.t.Helper()
	return s.create(edit, func(*ledger) outbox.Source { return nil })
}

func (s *stage) create(edit func(*outbox.Config), source func(*ledger) outbox.Source) *ledger {
	s.t.Helper()
	cfg := outbox.Config{KV: s.kv, Prefix: "reports/", Noun: "report", NewID: rand.Text, Send: s.to.Send}
	if edit != nil {
		edit(&cfg)
	}
	l := &ledger{kv: cfg.KV, accounts: store.NewTable[account](cfg.KV, "accounts/", "account")}
	var err error
	if l.box, err = outbox.New(cfg, source(l)); err != nil {
		s.t.Fatal(err)
	}
	return l
}

// start runs a ledger's outbox until stop is called, or the test ends.
func (s *stage) start(l *ledger) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.box.Run(ctx); err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	s.t.Cleanup(stop)
	synctest.Wait()
	return stop
}

// set changes the value of an account.
func (s *stage) set(l *ledger, name, value string) {
	s.t.Helper()
	_, err := l.accounts.Update(s.t.Context(), name, func(a *account) error { a.Value = value; return nil })
	if nf.KindOf(err) == nf.NotFound {
		err = l.accounts.Insert(s.t.Context(), name, account{Name: name, Value: value})
		l.box.Scan()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	l.box.Wake(name)
	synctest.Wait()
}

// open adds accounts without a value.
func (s *stage) open(l *ledger, names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.set(l, name, "")
	}
}

func (s *stage) put(l *ledger, r outbox.Request) {
	s.t.Helper()
	if _, err := l.box.Put(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

// later lets time pass.
func (s *stage) later(d time.Duration) {
	s.t.Helper()
	timer := time.NewTimer(d)
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
	synctest.Wait()
}

// want compares what was sent since the last time, queue by queue: there is an
// order within a queue alone.
func (s *stage) want(reason string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	if want == nil {
		want = []string{}
	}
	sent := s.to.take()
	slices.SortStableFunc(sent, func(a, b string) int { return strings.Compare(queue(a), queue(b)) })
	if d := cmp.Diff(want, sent); d != "" {
		s.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

// queue returns the queue of a request: "a" of "a=1".
func queue(sent string) string {
	key, _, _ := strings.Cut(sent, "=")
	return key
}

// dead returns the dead letters: "a=1".
func (s *stage) dead(l *ledger) []string {
	s.t.Helper()
	all, err := l.box.DeadLetters(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	out := []string{}
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s=%s", d.Key, d.Body))
	}
	return out
}
