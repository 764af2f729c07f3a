package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// order writes the new value of an account and the request that reports it in
// one list of writes. After an error, a caller repeats it, here or elsewhere.
func (l *ledger) order(ctx context.Context, name, value string) error {
	a, read, err := l.accounts.GetRevision(ctx, name)
	if nf.KindOf(err) == nf.NotFound {
		a, read, err = account{Name: name}, store.Absent, nil
	}
	if err != nil || a.Value == value {
		return err
	}
	a.Value, a.Number = value, a.Number+1
	request, _, err := l.box.PutOp(report(name, a.Number, value))
	if err != nil {
		return err
	}
	record, err := l.accounts.ReplaceOp(name, a, read)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, l.kv, []store.Op{request, record})
	if failed, ok := errors.AsType[*store.WriteError](err); ok && failed.Index == 0 && nf.KindOf(err) == nf.Exists {
		_, err = store.Write(ctx, l.kv, []store.Op{record}) // an earlier call was cut off after the request
	}
	l.box.Wake(name)
	return err
}

func (s *stage) order(l *ledger, name, value string) {
	s.t.Helper()
	if err := l.order(s.t.Context(), name, value); err != nil {
		s.t.Fatal(err)
	}
}

// TestStored delivers the requests of an outbox without a source.
func TestStored(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l, other := s.noun(nil), s.noun(nil)
		s.order(l, "a", "1")
		s.want("nothing is sent before Run")
		s.start(l)
		s.want("then it is sent at once", "a=1")
		s.order(l, "a", "2")
		s.order(l, "a-0000000001", "1")
		s.later(0)
		s.want("a request makes its queue", "a=2", "a-0000000001=1")
		s.later(time.Minute)
		s.order(other, "b", "1")
		s.later(8 * time.Second)
		s.want("a queue from elsewhere is found", "b=1")
		s.to.answers(down)
		s.order(l, "b", "2")
		s.later(0)
		s.want("a request is retried later", "b=2")
		for value := 3; value < 6; value++ {
			s.order(other, "b", fmt.Sprint(value))
		}
		s.order(l, "c", "1")
		s.later(time.Minute)
		s.to.take()
		s.to.answers(nil)
		s.later(time.Hour)
		var b []string
		for _, sent := range s.to.take() {
			if strings.HasPrefix(sent, "b=") {
				b = append(b, sent)
			}
		}
		if d := cmp.Diff([]string{"b=2", "b=3", "b=4", "b=5"}, b); d != "" {
			t.Errorf("the requests of a queue are sent in order, and once: -want +got:\n%s", d)
		}
		s.later(2 * time.Hour)
		for e, err := range s.kv.List(t.Context(), "reports/", "") {
			if err != nil || !strings.HasPrefix(e.Key, "reports/replicas/") {
				t.Errorf("%s is left, %v", e.Key, err)
			}
		}
	})
}

// TestStoredDeadLetters keeps a dead letter although its queue is empty.
func TestStoredDeadLetters(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.noun(patiently)
		s.start(l)
		s.to.answers(down)
		s.order(l, "a", "1")
		s.later(30 * time.Hour)
		dead, err := l.box.DeadLetters(t.Context())
		if err != nil || len(dead) != 1 {
			t.Fatalf("the dead letters are %v, %v", dead, err)
		}
		s.to.answers(nil)
		s.to.take()
		if _, err := l.box.Resend(t.Context(), dead[0]); err != nil {
			t.Fatal(err)
		}
		s.want("it makes its queue again", "a=1")
		s.to.answers(down)
		s.order(l, "a", "2")
		s.later(130 * time.Hour)
		if dead := s.dead(l); len(dead) > 0 {
			t.Errorf("%v is kept too long", dead)
		}
	})
}

// TestStoredReplicas shares the queues, and serves them all when one replica
// stops.
func TestStoredReplicas(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l, other := s.noun(nil), s.noun(nil)
		s.start(l)
		stop := s.start(other)
		s.later(time.Minute)
		for _, value := range []string{"1", "2"} {
			for i := range 40 {
				s.order(l, fmt.Sprintf("queue-%02d", i), value)
			}
			s.later(30 * time.Second)
			if sent := s.to.take(); len(sent) != 40 {
				t.Errorf("%d requests were sent, want 40, each once: %v", len(sent), sent)
			}
			stop()
		}
	})
}

// TestDropQueues deletes the requests and dead letters of the queues of a prefix alone.
func TestDropQueues(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		l := s.noun(patiently)
		s.to.answers(down)
		s.start(l)
		for _, name := range []string{"x.a", "x.b", "y.a"} {
			s.order(l, name, "1")
		}
		s.later(48 * time.Hour)
		s.order(l, "x.c", "1")
		s.order(l, "y.c", "1")
		s.later(time.Minute)
		if err := l.box.DropQueues(t.Context(), "x."); err != nil {
			t.Fatal(err)
		}
		s.to.take()
		s.to.answers(nil)
		s.later(48 * time.Hour)
		s.want("the others are delivered", "y.c=1")
		if d := cmp.Diff([]string{"y.a=1"}, s.dead(l)); d != "" {
			t.Errorf("dead letters: -want +got:\n%s", d)
		}
	})
}

// TestPutOp rejects requests that could not be delivered in order.
func TestPutOp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		edit   func(r *outbox.Request)
		ok     bool
	}{
		"Request":  {"a request", func(*outbox.Request) {}, true},
		"Key":      {"it belongs to no queue", func(r *outbox.Request) { r.Key = "" }, false},
		"None":     {"it has no number", func(r *outbox.Request) { r.Number = 0 }, false},
		"Negative": {"it would be sent before earlier ones", func(r *outbox.Request) { r.Number = -1 }, false},
		"Long":     {"likewise", func(r *outbox.Request) { r.Number = 1e10 }, false},
		"Policy":   {"its policy is invalid", func(r *outbox.Request) { r.Policy.Attempts = -1 }, false},
		"Large":    {"no store takes it", func(r *outbox.Request) { r.Body = make([]byte, store.MaxValue) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				r := report("a", 1, "x")
				tc.edit(&r)
				_, d, err := s.noun(nil).box.PutOp(r)
				if (err == nil) != tc.ok || !tc.ok && nf.KindOf(err) != nf.Invalid && nf.KindOf(err) != nf.TooLarge {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				if tc.ok && (d.Method != http.MethodPut || d.ID != "a-0000000001") {
					t.Errorf("%s: got %+v", tc.reason, d)
				}
			})
		})
	}
}
