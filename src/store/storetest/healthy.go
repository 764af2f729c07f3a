package storetest

import "context"

// UntilHealthy checks the health of a store until it is good or the context
// ends, and returns the last result. A restarted database is not healthy at
// once: a node has no leader for a moment, and calls on closed connections
// fail.
func UntilHealthy(ctx context.Context, kv interface{ Healthy(context.Context) error }) error {
	for {
		err := kv.Healthy(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}
