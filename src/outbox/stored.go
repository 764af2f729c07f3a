package outbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

// storedShards is the number of shards of an outbox without a source.
const storedShards = 16

// stored is the source of an outbox that has no other. A pending request makes
// its queue, and is sent as it was put.
type stored struct{ o *Outbox }

var _ Source = stored{}

// Queues implements Source. It reads all pending requests.
func (s stored) Queues(ctx context.Context) iter.Seq2[Queue, error] {
	return func(yield func(Queue, error) bool) {
		last := map[string]string{} // ids, by key; the requests of two queues may be mixed
		for d, err := range s.o.pending.All(ctx, "") {
			if err != nil {
				yield(Queue{}, err)
				return
			}
			last[d.Key] = d.ID
		}
		for key, id := range last {
			shard := fmt.Sprintf("%02d", sha256.Sum256([]byte(key))[0]%storedShards)
			if !yield(Queue{Key: key, Shard: shard, Name: key, Version: id}, nil) {
				return
			}
		}
	}
}

// Serve implements Source.
func (stored) Serve(ctx context.Context, s *Shard) {
	s.Run(ctx, func(Queue, delay.Signal) Feed { return storedFeed{} })
}

// Collect implements Source.
func (stored) Collect(context.Context) error { return nil }

// storedFeed is the feed of a queue that has only what was put into it.
type storedFeed struct{}

var _ Feed = storedFeed{}

// Next implements Feed.
func (storedFeed) Next(context.Context) (time.Duration, error) { return time.Hour, nil }

// Prepare implements Feed.
func (storedFeed) Prepare(_ context.Context, d Delivery) (Request, error) { return d.Request, nil }

// Sent implements Feed.
func (storedFeed) Sent(context.Context, Delivery) error { return nil }

// Forget implements Feed.
func (storedFeed) Forget() {}

// Close implements Feed.
func (storedFeed) Close() {}
