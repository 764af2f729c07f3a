package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The limits of one transaction. etcd accepts at most 128 ops and requests of
// 1.5 MiB by default.
const (
	maxOps   = 100
	maxBytes = store.MaxStored
)

var _ store.Writer = (*Store)(nil)

// Write implements store.Writer. Ops that fit into one transaction are carried
// out together or not at all. Others need several transactions, in order.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	revisions := make([]store.Revision, 0, len(ops))
	for len(ops) > 0 {
		n := fitting(ops)
		revision, err := s.transact(ctx, ops[:n])
		if err != nil {
			err.Index += len(revisions)
			return nil, err
		}
		for _, op := range ops[:n] {
			if op.Value == nil {
				revisions = append(revisions, 0)
				continue
			}
			revisions = append(revisions, revision)
		}
		ops = ops[n:]
	}
	return revisions, nil
}

// fitting returns how many of the ops fit into one transaction, at least one.
func fitting(ops []store.Op) int {
	size := 0
	for i, op := range ops {
		if size += len(op.Key) + len(op.Value); i > 0 && (i == maxOps || size > maxBytes) {
			return i
		}
	}
	return len(ops)
}

// transact carries out ops in one transaction, and returns its revision.
func (s *Store) transact(ctx context.Context, ops []store.Op) (store.Revision, *store.WriteError) {
	var conditions []clientv3.Cmp
	var writes, lookups []clientv3.Op
	for i, op := range ops {
		if err := s.check(ctx, "write", op.Key); err != nil {
			return 0, &store.WriteError{Index: i, Err: err}
		}
		if err := store.CheckValue(op.Key, op.Value); err != nil {
			return 0, &store.WriteError{Index: i, Err: err}
		}
		if op.Expect != store.Any {
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(op.Key), "=", int64(op.Expect)))
			lookups = append(lookups, clientv3.OpGet(op.Key, clientv3.WithKeysOnly()))
		}
		switch {
		case op.Check:
		case op.Value == nil:
			writes = append(writes, clientv3.OpDelete(op.Key))
		default:
			writes = append(writes, clientv3.OpPut(op.Key, s.stored(op.Key, op.Value)))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	done, err := callEtcd(ctx, s, s.client.Txn(ctx).If(conditions...).Then(writes...).Else(lookups...).Commit)
	if err != nil {
		return 0, &store.WriteError{Err: s.translate(ctx, "write", quoted(ops[0].Key), err)}
	}
	if !done.Succeeded {
		return 0, unexpected(ops, done)
	}
	if err := s.acknowledge(); err != nil {
		return 0, &store.WriteError{Err: err}
	}
	return store.Revision(done.Header.Revision), nil
}

// unexpected returns the error of the first op whose key did not have the
// expected revision, from the lookups of a transaction that did nothing.
func unexpected(ops []store.Op, done *clientv3.TxnResponse) *store.WriteError {
	looked := 0
	for i, op := range ops {
		if op.Expect == store.Any {
			continue
		}
		now := store.Absent
		if found := done.Responses[looked].GetResponseRange().Kvs; len(found) > 0 {
			now = store.Revision(found[0].ModRevision)
		}
		looked++
		if now != op.Expect {
			return &store.WriteError{Index: i, Err: op.Unexpected()}
		}
	}
	return &store.WriteError{Err: nf.E(nf.Internal, "write", quoted(ops[0].Key), nil)} // etcd compares what it reads
}

// stored returns a value as it is stored.
func (s *Store) stored(key string, value []byte) string {
	if s.server != nil {
		return withSum(key, value)
	}
	return string(value)
}
