package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// callEtcd calls etcd and returns when the call, the context or the embedded server
// ends. A call to the embedded server may block on a lock regardless of its
// context: during a defragmentation, and forever after a failure.
func callEtcd[T any](ctx context.Context, s *Store, call func() (T, error)) (T, error) {
	if s.server == nil {
		return call()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	var none T
	if !s.server.enter() {
		return none, errClosed
	}
	go func() {
		defer s.server.calls.Done()
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-s.server.failed:
		return none, s.server.err
	}
}

var errClosed = errors.New("the store is closed")

// readRange reads a range of keys, as of the revision of the request, or as of now
// if that is 0. It sees every write that has returned.
//
// An embedded server is read directly. A request to it would wait for the log, which
// has nothing to agree on: the server is the only member, and has applied each write
// before it acknowledges it. A request would also count all keys to the end of the
// range, whatever its limit is.
func (s *Store) readRange(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if s.server == nil {
		got, err := s.client.Get(ctx, string(r.Key), clientv3.WithRange(string(r.RangeEnd)), clientv3.WithLimit(r.Limit), clientv3.WithRev(r.Revision))
		return (*etcdserverpb.RangeResponse)(got), err
	}
	return callEtcd(ctx, s, func() (*etcdserverpb.RangeResponse, error) {
		got, _, err := txn.Range(ctx, s.server.etcd.GetLogger(), s.server.etcd.Server.KV(), r, false)
		if errors.Is(err, mvcc.ErrCompacted) {
			err = rpctypes.ErrCompacted
		}
		return got, err
	})
}

// present returns the revision of an embedded server; 0 for an outside cluster.
func (s *Store) present(ctx context.Context) (int64, error) {
	if s.server == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return callEtcd(ctx, s, func() (int64, error) { return s.server.etcd.Server.KV().Rev(), nil })
}

func (s *Store) check(ctx context.Context, op, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := s.failure(); err != nil {
		return err
	}
	return s.translate(ctx, op, quoted(key), ctx.Err())
}

// translate returns the error of a call with its kind. If the embedded server has
// failed, it returns the reason for that instead.
func (s *Store) translate(ctx context.Context, op, subject string, err error) error {
	if failed := s.failure(); err != nil && failed != nil {
		return failed
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: nf.ReasonNoSpace, Err: s.full()}
	}
	return translate(ctx, op, subject, err)
}

// failure returns the reason if the embedded server has failed, otherwise nil.
func (s *Store) failure() error {
	if s.server == nil {
		return nil
	}
	select {
	case <-s.server.failed:
		return s.server.err
	default:
		return nil
	}
}

// Wait blocks until the context ends, and then returns nil, or until the embedded
// server fails, for example because its disk is full. It then returns the reason,
// all other calls return it too, and the process must be restarted.
func (s *Store) Wait(ctx context.Context) error {
	if s.server == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-ctx.Done():
	case <-s.server.failed:
	}
	return s.failure()
}

// acknowledge raises the watermark to the last committed entry. It is called before
// the result of a write is returned.
func (s *Store) acknowledge() error {
	if s.server == nil {
		return nil
	}
	if err := s.server.mark.raise(s.server.etcd.Server.CommittedIndex()); err != nil {
		s.server.fail(err)
		return s.server.err
	}
	return nil
}
