package etcd

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	insideRound  = 15 * time.Second // between two rounds on an embedded server
	outsideRound = time.Minute      // between two rounds on a cluster
	roundTime    = 5 * time.Minute  // limit of one round

	// keepHistory is the minimum time for which history is kept. The maximum is
	// twice that, except for history that a list is reading.
	keepHistory = time.Minute
)

// Defragmentation copies all data in use, and blocks all other calls while it runs:
// two seconds for 200 MiB of small records on two slow cores. It is therefore
// limited to large files that are more than half free and have little data in use,
// to files near the quota, and to times when writes are refused anyway.
const (
	largeFile = 128 << 20
	quickCopy = 256 << 20
)

// maintenance measures the space of a database regularly while it is open. In an
// embedded server it also removes history, defragments the file, and disarms the
// alarm once there is space again.
type maintenance struct {
	store  *Store
	log    *slog.Logger
	space  atomic.Pointer[Space]
	lists  readers
	rounds <-chan time.Time // starts a round at the time received; nil: a ticker
	stop   context.CancelFunc
	ended  sync.WaitGroup

	// State of the rounds.
	noted     int64 // a revision that was current at notedAt
	notedAt   time.Time
	compacted time.Time
	removed   int64 // the revision before which history is removed
	level     int   // highest threshold that is exceeded, in percent
}

// start starts the rounds.
func (m *maintenance) start(ctx context.Context) {
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.ended.Go(func() {
		rounds := m.rounds
		if rounds == nil {
			every := outsideRound
			if m.store.server != nil {
				every = insideRound
			}
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			rounds = ticker.C
			m.round(ctx, time.Now())
		}
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-rounds:
				m.round(ctx, now)
			}
		}
	})
}

// close ends the rounds and waits for the last one.
func (m *maintenance) close() {
	m.stop()
	m.ended.Wait()
}

// round does the maintenance once. The next round retries what fails.
func (m *maintenance) round(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	space, revision, err := m.store.measure(ctx)
	if err == nil && m.store.server == nil {
		m.watchCompaction(ctx, revision, now)
	}
	if err == nil && m.store.server != nil {
		space, err = m.makeRoom(ctx, space, revision, now)
	}
	if err != nil {
		if ctx.Err() == nil {
			m.log.WarnContext(ctx, "store maintenance failed", "error", err)
		}
		return
	}
	space.Compacted = m.compacted
	m.logUsage(ctx, space)
	m.space.Store(&space)
}

// watchCompaction records when the history of a cluster was removed. etcd does not
// report that, but refuses to read a revision that is gone.
func (m *maintenance) watchCompaction(ctx context.Context, revision int64, now time.Time) {
	if m.noted != 0 {
		_, err := m.store.client.Get(ctx, "health", clientv3.WithRev(m.noted), clientv3.WithCountOnly())
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return
		}
		m.compacted = now
	}
	m.noted = revision
}

// makeRoom removes history and defragments as needed, and returns the space after
// that.
func (m *maintenance) makeRoom(ctx context.Context, space Space, revision int64, now time.Time) (Space, error) {
	removed, err := m.compact(ctx, space, revision, now)
	if err != nil {
		return space, err
	}
	// While writes are refused, etcd does not update the size in use.
	if needsDefrag(space) || space.Full && removed {
		began, before := time.Now(), space.Size
		_, err := callEtcd(ctx, m.store, func() (struct{}, error) { return struct{}{}, m.store.server.etcd.Server.Defragment() })
		if err != nil {
			return space, m.store.translate(ctx, "defragment", "etcd", err)
		}
		if space, _, err = m.store.measure(ctx); err != nil {
			return space, err
		}
		m.log.InfoContext(ctx, "store defragmented", "bytes_before", before, "bytes_after", space.Size, "seconds", time.Since(began).Seconds())
	}
	if space.Full && space.Size < space.Quota/10*9 {
		if err := m.store.disarm(ctx); err != nil {
			return space, err
		}
		space.Full = false
	}
	return space, nil
}

// needsDefrag reports whether an embedded server that accepts writes should be
// defragmented.
func needsDefrag(s Space) bool {
	free := s.Size - s.InUse
	if s.Size > s.Quota/10*9 {
		return free > s.Size/4
	}
	return s.Size >= largeFile && free > s.Size/2 && s.InUse <= quickCopy
}

// compact removes history older than keepHistory, or all history if writes are
// refused, but none that a list is reading. It reports whether it removed any.
func (m *maintenance) compact(ctx context.Context, space Space, revision int64, now time.Time) (bool, error) {
	target := m.noted
	var options []clientv3.CompactOption
	switch {
	case space.Full:
		target, options = revision, append(options, clientv3.WithCompactPhysical()) // waits until the space is free
	case m.notedAt.IsZero():
		m.noted, m.notedAt = revision, now
		return false, nil
	case now.Sub(m.notedAt) < keepHistory:
		return false, nil
	}
	m.noted, m.notedAt = revision, now
	if oldest := m.lists.oldest(target, now); oldest < target {
		target = oldest
	} else {
		m.compacted = now
	}
	if target <= m.removed {
		return false, nil
	}
	_, err := callEtcd(ctx, m.store, func() (*clientv3.CompactResponse, error) { return m.store.client.Compact(ctx, target, options...) })
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return false, m.store.translate(ctx, "compact", "etcd", err)
	}
	m.removed = target
	return true, nil
}

// logUsage logs once when a threshold is exceeded, and once when usage is 5 % below
// it again.
func (m *maintenance) logUsage(ctx context.Context, s Space) {
	level := 0
	for _, percent := range [...]int{75, 90} {
		limit := s.Quota / 100 * int64(percent)
		if m.level >= percent {
			limit -= s.Quota / 20
		}
		if s.Quota > 0 && s.Size > limit {
			level = percent
		}
	}
	if s.Full {
		level = 100
	}
	if level == m.level {
		return
	}
	attrs := []any{"percent", max(level, m.level), "size_bytes", s.Size, "in_use_bytes", s.InUse, "quota_bytes", s.Quota}
	switch {
	case s.Full:
		m.log.ErrorContext(ctx, "store is full and refuses writes", append(attrs, "error", m.store.full())...)
	case level > m.level:
		m.log.WarnContext(ctx, "store usage rose above a threshold", attrs...)
	default:
		m.log.InfoContext(ctx, "store usage fell below a threshold", attrs...)
	}
	m.level = level
}
