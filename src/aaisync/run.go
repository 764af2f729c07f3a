package aaisync

import "context"

// Run writes, if this replica is the one that does, until the context ends. It must be
// called only once.
func (k *Keeper) Run(ctx context.Context) error { return k.group.Run(ctx, k.work) }
