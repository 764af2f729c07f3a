package etcd

import (
	"context"
	"errors"
	"iter"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

var _ store.Watcher = (*Store)(nil)

var errWatchEnded = errors.New("the watch has ended")

// Watch implements store.Watcher. After a lost connection, it continues with the next
// change. It fails if the node that it watches has no leader, and with the reason
// "compacted" if it falls behind the history.
func (s *Store) Watch(ctx context.Context, prefix string) (iter.Seq2[store.Change, error], error) {
	now, err := s.now(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return func(yield func(store.Change, error) bool) {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		responses, err := callEtcd(ctx, s, func() (clientv3.WatchChan, error) {
			return s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(now+1)), nil
		})
		for err == nil {
			var got clientv3.WatchResponse
			if got, err = callEtcd(ctx, s, func() (clientv3.WatchResponse, error) { return nextResponse(responses) }); err != nil {
				break
			}
			for _, e := range got.Events {
				c := store.Change{Entry: store.Entry{Key: string(e.Kv.Key), Revision: store.Revision(e.Kv.ModRevision)}, Deleted: e.Type == clientv3.EventTypeDelete}
				if !c.Deleted {
					c.Value = withoutSum(c.Key, e.Kv.Value)
				}
				if !yield(c, nil) {
					return
				}
			}
		}
		yield(store.Change{}, s.translate(ctx, "watch", quoted(prefix), err))
	}, nil
}

// nextResponse waits for the next response of a watch.
func nextResponse(responses clientv3.WatchChan) (clientv3.WatchResponse, error) {
	got, open := <-responses
	if !open {
		return got, errWatchEnded
	}
	return got, got.Err()
}

// now returns the present revision of the database.
func (s *Store) now(ctx context.Context, key string) (int64, error) {
	if err := s.check(ctx, "watch", key); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	got, err := callEtcd(ctx, s, func() (*clientv3.GetResponse, error) { return s.client.Get(ctx, key, clientv3.WithCountOnly()) })
	if err != nil {
		return 0, s.translate(ctx, "watch", quoted(key), err)
	}
	return got.Header.Revision, nil
}
