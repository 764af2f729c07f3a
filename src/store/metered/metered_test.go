package metered_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/metered"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV {
		return metered.New(memory.New(), func(string, string, time.Duration) {})
	})
}

// report is one call of the callback.
type report struct {
	Method, Outcome string
	Took            time.Duration
}

func TestReports(t *testing.T) {
	away := nf.E(nf.Unreachable, "use", "the store", errors.New("connection refused"))
	cases := map[string]struct {
		reason string
		fail   error // of the store; nil: it is well
		do     func(ctx context.Context, kv store.KV)
		want   []report
	}{
		"Get": {"what is there is ok", nil, func(ctx context.Context, kv store.KV) {
			_, _ = kv.Get(ctx, "a")
		}, []report{{"get", "ok", time.Second}}},
		"GetNothing": {"an error is told by its kind", nil, func(ctx context.Context, kv store.KV) {
			_, _ = kv.Get(ctx, "z")
		}, []report{{"get", "not-found", time.Second}}},
		"Put": {"a write is ok", nil, func(ctx context.Context, kv store.KV) {
			_, _ = kv.Put(ctx, "z", nil, store.Absent)
		}, []report{{"put", "ok", time.Second}}},
		"PutTwice": {"a lost race is no failure of the store", nil, func(ctx context.Context, kv store.KV) {
			_, _ = kv.Put(ctx, "a", nil, store.Absent)
		}, []report{{"put", "already-exists", time.Second}}},
		"Delete": {"a removal is ok", nil, func(ctx context.Context, kv store.KV) {
			_ = kv.Delete(ctx, "a", store.Any)
		}, []report{{"delete", "ok", time.Second}}},
		"List": {"a list takes the time of the store, not that of its reader", nil, func(ctx context.Context, kv store.KV) {
			for _, err := range kv.List(ctx, "", "") {
				wait(ctx, time.Hour)
				_ = err
			}
		}, []report{{"list", "ok", time.Second}}},
		"ListLeft": {"who leaves a list has had what he wanted", nil, func(ctx context.Context, kv store.KV) {
			for _, err := range kv.List(ctx, "", "") {
				_ = err
				break
			}
		}, []report{{"list", "ok", time.Second}}},
		"ListNested": {"what is read meanwhile is reported on its own", nil, func(ctx context.Context, kv store.KV) {
			for e, err := range kv.List(ctx, "a", "") {
				_, _ = kv.Get(ctx, e.Key)
				_ = err
			}
		}, []report{{"get", "ok", time.Second}, {"list", "ok", time.Second}}},
		"ListUnread": {"a list that nobody reads is no request", nil, func(ctx context.Context, kv store.KV) {
			kv.List(ctx, "", "")
		}, nil},
		"ListAway": {"a list that ends with an error failed", away, func(ctx context.Context, kv store.KV) {
			for _, err := range kv.List(ctx, "", "") {
				_ = err
			}
		}, []report{{"list", "unreachable", time.Second}}},
		"Away": {"a store that does not answer is unreachable", away, func(ctx context.Context, kv store.KV) {
			_ = kv.Delete(ctx, "a", store.Any)
		}, []report{{"delete", "unreachable", time.Second}}},
		"Late": {"one that does not answer in time is unreachable", away, func(ctx context.Context, kv store.KV) {
			ctx, cancel := context.WithTimeout(ctx, 0)
			defer cancel()
			_, _ = kv.Put(ctx, "a", nil, store.Any)
		}, []report{{"put", "unreachable", time.Second}}},
		"GivenUp": {"a request that its caller gave up says nothing of the store", away, func(ctx context.Context, kv store.KV) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, _ = kv.Get(ctx, "a")
		}, []report{{"get", "cancelled", time.Second}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []report
				kv := metered.New(slow{populated(t), tc.fail}, func(method, outcome string, took time.Duration) {
					got = append(got, report{method, outcome, took})
				})
				tc.do(t.Context(), kv)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestCloseIsHandedOn(t *testing.T) {
	want := errors.New("it did not close cleanly")
	kv := metered.New(slow{memory.New(), want}, func(method, _ string, _ time.Duration) {
		t.Errorf("%s is reported: closing is no request", method)
	})
	if err := kv.Close(); !errors.Is(err, want) {
		t.Errorf("Close returned %v, want the store's own error", err)
	}
}

func populated(t *testing.T) store.KV {
	t.Helper()
	kv := memory.New()
	for _, key := range []string{"a", "b"} {
		if _, err := kv.Put(t.Context(), key, []byte("x"), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	return kv
}

// slow is a store that takes a second for each request, and then fails if it
// has an error.
type slow struct {
	store.KV
	fail error
}

func (s slow) Get(ctx context.Context, key string) (store.Entry, error) {
	wait(context.WithoutCancel(ctx), time.Second)
	if s.fail != nil {
		return store.Entry{}, s.fail
	}
	return s.KV.Get(ctx, key)
}

func (s slow) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	wait(context.WithoutCancel(ctx), time.Second)
	if s.fail != nil {
		return 0, s.fail
	}
	return s.KV.Put(ctx, key, value, expected)
}

func (s slow) Delete(ctx context.Context, key string, expected store.Revision) error {
	wait(context.WithoutCancel(ctx), time.Second)
	if s.fail != nil {
		return s.fail
	}
	return s.KV.Delete(ctx, key, expected)
}

func (s slow) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		wait(context.WithoutCancel(ctx), time.Second)
		if s.fail != nil {
			yield(store.Entry{}, s.fail)
			return
		}
		s.KV.List(ctx, prefix, start)(yield)
	}
}

func (s slow) Close() error { return s.fail }

// wait lets the time of the test's bubble pass.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
