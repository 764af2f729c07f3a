package storetest

import "context"

// UntilHealthy asks after the health of a store until it is good, or until the
// context is done; then it returns what was said last. A database that is just
// back is not well at once: a node knows of no leader for a moment, and
// connections that were hung up fail whoever is given one.
func UntilHealthy(ctx context.Context, kv interface{ Healthy(context.Context) error }) error {
	for {
		err := kv.Healthy(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}
