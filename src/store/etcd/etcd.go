// Package etcd stores records in etcd: in a server inside this process, which
// keeps its files in one folder, or in an outside cluster.
//
// A write that returned without an error is on the disks of a majority. One
// that failed with nf.Unreachable may have been carried out, and is never
// retried here. No call lasts longer than its context, or 15 seconds. An
// outside cluster of three survives the loss of one node: reads go to another,
// writes in progress are nf.Unreachable, and later ones use a node that responds.
//
// The server inside the process opens no port and no socket, and locks its
// folder against other processes. Open checks the files: it returns an error if
// one is damaged, or if an acknowledged write is missing. The package does not
// back up, and does not set up an outside cluster, its quota, its compaction or
// its users.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Store is a database in etcd. The revision of a key is the etcd revision of
// its last write. Create it with Open.
type Store struct {
	client   *clientv3.Client
	patience time.Duration // limit of a call
	status   func(context.Context) (*etcdserverpb.StatusResponse, error)
	server   *server // nil with an outside cluster

	maintenance *maintenance
}

var _ store.KV = (*Store)(nil)

// Get implements store.KV. It sees every write that has returned.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.check(ctx, "read", key); err != nil {
		return store.Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	got, err := s.readRange(ctx, &etcdserverpb.RangeRequest{Key: []byte(key)})
	if err != nil {
		return store.Entry{}, s.translate(ctx, "read", quoted(key), err)
	}
	if len(got.Kvs) == 0 {
		return store.Entry{}, fail(nf.NotFound, "read", key)
	}
	kv := got.Kvs[0]
	return store.Entry{Key: key, Value: withoutSum(key, kv.Value), Revision: store.Revision(kv.ModRevision)}, nil
}

// Put implements store.KV, in one transaction.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if value == nil {
		value = []byte{} // an op without a value deletes
	}
	revision, failed := s.transact(ctx, []store.Op{{Key: key, Value: value, Expect: expected}})
	if failed == nil {
		return revision, nil
	}
	if kind := nf.KindOf(failed.Err); kind == nf.Exists || kind == nf.Conflict {
		return 0, fail(kind, "write", key)
	}
	return 0, failed.Err
}

// Delete implements store.KV, in one transaction.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := s.check(ctx, "delete", key); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	del := s.client.Txn(ctx)
	if expected != store.Any {
		del = del.If(clientv3.Compare(clientv3.ModRevision(key), "=", int64(expected)))
	}
	done, err := callEtcd(ctx, s, del.Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key, clientv3.WithCountOnly())).Commit)
	if err != nil {
		return s.translate(ctx, "delete", quoted(key), err)
	}
	answer := done.Responses[0]
	switch {
	case done.Succeeded && answer.GetResponseDeleteRange().Deleted > 0:
		return s.acknowledge()
	case !done.Succeeded && answer.GetResponseRange().Count > 0:
		return fail(nf.Conflict, "delete", key)
	default:
		return fail(nf.NotFound, "delete", key)
	}
}

// The sizes of the pages that List requests, unless the caller expects fewer entries
// (store.Expecting). They adapt to the sizes of the entries. The largest bounds the
// memory for the first page of large entries that follows small ones: that of chunks
// of blobs has 32 MiB.
const (
	firstPage = 64      // entries
	maxPage   = 128     // entries
	fullPage  = 4 << 20 // bytes
)

// List implements store.KV. It yields a snapshot of the entries. If reading
// takes longer than the history is kept, it fails with nf.Unreachable and the
// reason "compacted". An embedded server keeps the history for up to 15 minutes
// while a list reads it.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		first, err := store.FirstKey(prefix, start)
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		present, err := s.present(ctx)
		if err != nil {
			yield(store.Entry{}, s.translate(ctx, "list", quoted(prefix), err))
			return
		}
		list := s.maintenance.lists.add(present)
		defer s.maintenance.lists.remove(list)
		p := page{prefix: prefix, from: cmp.Or(first, "\x00"), end: clientv3.GetPrefixRangeEnd(prefix), limit: int64(store.FirstPage(ctx, firstPage, maxPage))}
		if prefix == "" {
			p.end = "\x00" // in etcd: no end
		}
		for more := true; more; {
			var entries []store.Entry
			entries, more, err = s.page(ctx, &p)
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			s.maintenance.lists.reads(list, p.revision)
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// page is the next page that List requests.
type page struct {
	prefix    string
	from, end string
	limit     int64
	revision  int64 // of the whole database; 0: the current one
}

// page reads a page and advances p to the next.
func (s *Store) page(ctx context.Context, p *page) (entries []store.Entry, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	got, err := s.readRange(ctx, &etcdserverpb.RangeRequest{Key: []byte(p.from), RangeEnd: []byte(p.end), Limit: p.limit, Revision: p.revision})
	if err != nil {
		return nil, false, s.translate(ctx, "list", quoted(p.prefix), err)
	}
	size := 0
	for _, kv := range got.Kvs {
		size += len(kv.Value)
		key := string(kv.Key)
		entries = append(entries, store.Entry{Key: key, Value: withoutSum(key, kv.Value), Revision: store.Revision(kv.ModRevision)})
	}
	if p.revision == 0 { // later responses have the present revision, not that which was read
		p.revision = got.Header.Revision
	}
	if got.More {
		p.from = entries[len(entries)-1].Key + "\x00"
	}
	if size < fullPage {
		p.limit = min(p.limit*2, maxPage)
	} else {
		p.limit = max(p.limit/2, 1)
	}
	return entries, got.More, nil
}

// Close implements store.KV. It stops an embedded server and waits for its end.
func (s *Store) Close() error {
	s.maintenance.close()
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // the client of an embedded server reports its closing so
	}
	if s.server == nil {
		return err
	}
	return errors.Join(err, s.server.close(0))
}

func fail(kind nf.Kind, op, key string) error {
	return nf.E(kind, op, quoted(key), nil)
}

func quoted(key string) string { return "key " + strconv.Quote(key) }
