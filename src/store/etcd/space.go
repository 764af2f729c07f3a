package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Space is the space that a database uses; in a cluster, the member with the largest
// file.
type Space struct {
	Size      int64     // bytes of the file
	InUse     int64     // bytes of the file that are not free
	Quota     int64     // size above which writes are refused; 0 if unknown, as with etcd before 3.6
	Compacted time.Time // last removal of history that this process has seen; zero if none
	Full      bool      // writes are refused until space is freed and the alarm is disarmed
}

// Space returns the space at the last measurement, which is usually less than a
// minute old. It is zero before the first one.
func (s *Store) Space() Space {
	if seen := s.maintenance.space.Load(); seen != nil {
		return *seen
	}
	return Space{}
}

// measure returns the present space and revision.
func (s *Store) measure(ctx context.Context) (Space, int64, error) {
	if s.server != nil {
		status, err := callEtcd(ctx, s, func() (*clientv3.StatusResponse, error) { return s.client.Status(ctx, "") })
		if err != nil {
			return Space{}, 0, s.translate(ctx, "measure", "etcd", err)
		}
		full := false
		for _, a := range s.server.etcd.Server.Alarms() {
			full = full || a.Alarm == etcdserverpb.AlarmType_NOSPACE
		}
		return Space{Size: status.DbSize, InUse: status.DbSizeInUse, Quota: status.DbSizeQuota, Full: full}, status.Header.GetRevision(), nil
	}
	var space Space
	var revision int64
	var errs []error
	for _, endpoint := range s.client.Endpoints() {
		status, err := s.client.Status(ctx, endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		revision = max(revision, status.Header.GetRevision())
		if status.DbSize > space.Size {
			space.Size, space.InUse, space.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
		}
		space.Full = space.Full || len(status.Errors) > 0
	}
	if len(errs) == len(s.client.Endpoints()) {
		return Space{}, 0, s.translate(ctx, "measure", "etcd", errors.Join(errs...))
	}
	if space.Full { // or another alarm
		space.Full = s.noSpaceAlarm(ctx)
	}
	return space, revision, nil
}

// noSpaceAlarm reports whether the alarm NOSPACE is raised.
func (s *Store) noSpaceAlarm(ctx context.Context) bool {
	list, err := callEtcd(ctx, s, func() (*clientv3.AlarmResponse, error) { return s.client.AlarmList(ctx) })
	if err != nil {
		return false
	}
	for _, a := range list.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// Healthy returns nf.Unreachable unless the database answers, has a leader and
// has raised no alarm; the cause names the alarm. The reason is
// nf.ReasonNoSpace if the database refuses writes for lack of space. A cluster
// that has lost one node of three is healthy.
func (s *Store) Healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.failure(); err != nil {
		return err
	}
	_, err := callEtcd(ctx, s, func() (*clientv3.GetResponse, error) { return s.client.Get(ctx, "health", clientv3.WithCountOnly()) })
	if err != nil {
		return s.translate(ctx, "use", "etcd", err)
	}
	// Any node will do: an alarm is raised on all of them.
	status, err := callEtcd(ctx, s, func() (*etcdserverpb.StatusResponse, error) { return s.status(ctx) })
	switch {
	case err != nil:
		return s.translate(ctx, "use", "etcd", err)
	case len(status.Errors) == 0:
		return nil
	case s.noSpaceAlarm(ctx):
		return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "etcd", Reason: nf.ReasonNoSpace, Err: s.full()}
	}
	return nf.E(nf.Unreachable, "use", "etcd", errors.New(status.Errors[0]))
}

// full returns the cause of a refused write, with the remedy.
func (s *Store) full() error {
	if s.server == nil {
		return errors.New("the etcd cluster is full and has raised the alarm NOSPACE: compact and defragment it, or raise its --quota-backend-bytes, and then disarm the alarm (etcdctl alarm disarm)")
	}
	return fmt.Errorf("the store has reached its quota of %d MiB and has raised the alarm NOSPACE: raise --store-quota, or shorten --operation-retention and --audit-retention so that less is kept, and restart the service", s.server.quota>>20)
}
