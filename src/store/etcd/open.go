package etcd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap/zapcore"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config says where the database is: either Dir or Endpoints.
type Config struct {
	Dir       string       // the folder of a server inside this process; made when missing
	Endpoints []string     // the client URLs of an outside cluster
	Logger    *slog.Logger // what etcd warns of; nowhere when nil
}

// answerTime is how long Open waits for an outside cluster.
const answerTime = 15 * time.Second

// Open returns the database when it is ready to be used: nf.Conflict at once
// when another process uses the folder, nf.Unreachable when the cluster does not
// answer, nf.Invalid when the configuration is wrong. The context bounds the
// opening only.
func Open(ctx context.Context, config Config) (*Store, error) {
	switch {
	case (config.Dir == "") == (len(config.Endpoints) == 0):
		return nil, nf.E(nf.Invalid, "open", "etcd", errors.New("either a folder or endpoints are needed"))
	case config.Dir != "":
		return openInside(ctx, config, quota)
	default:
		return openOutside(ctx, config)
	}
}

func openOutside(ctx context.Context, config Config) (*Store, error) {
	subject := "etcd at " + strings.Join(config.Endpoints, ",")
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            config.Endpoints,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               logger(config.Logger, zapcore.WarnLevel),
	})
	if err != nil {
		return nil, nf.E(nf.Invalid, "open", subject, err)
	}
	s := &Store{client: client, endpoints: config.Endpoints}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := s.Healthy(ctx); err != nil {
		return nil, nf.E(nf.Unreachable, "open", subject, errors.Join(err, s.Close()))
	}
	return s, nil
}

func openInside(ctx context.Context, config Config, quota int64) (*Store, error) {
	server, err := start(ctx, config, quota)
	if err != nil {
		return nil, err
	}
	s := &Store{client: v3client.New(server.etcd.Server), endpoints: []string{""}, server: server}
	if err := s.disarm(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// disarm takes back the alarm that the database was full. The start has made
// the file as small as it can be; if that was not enough, the next write raises
// the alarm again.
func (s *Store) disarm(ctx context.Context) error {
	for _, alarm := range s.server.etcd.Server.Alarms() {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return nf.E(nf.Unreachable, "open", "etcd", err)
		}
	}
	return nil
}
