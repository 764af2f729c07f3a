package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config says where the database is: either Dir or Endpoints.
type Config struct {
	Dir       string       // the folder of a server inside this process; made when missing
	Endpoints []string     // the client URLs of an outside cluster; all of them https:// or none
	CA        string       // the file with the authorities that vouch for the nodes; the system's when empty
	Cert, Key string       // the files with the certificate that the client shows and its key; both or none
	User      string       // who the client is to the cluster, where it has users: one that may read and write all keys
	Password  nf.Secret    // the user's
	Logger    *slog.Logger // what etcd complains of; nowhere when nil
	Quota     int64        // size of the embedded server's file above which writes are refused; 0: DefaultQuota
}

// The default quota of an embedded server, and the largest quota that etcd
// recommends. Both values are etcd's own.
const (
	DefaultQuota = 2 << 30
	MaxQuota     = 8 << 30
)

// answerTime is how long Open waits for an outside cluster, and every call for
// its answer, unless the caller is less patient. An election takes less.
const answerTime = 15 * time.Second

// Open returns the database when it is ready to be used: nf.Conflict at once
// when another process uses the folder, nf.Unreachable when the cluster does not
// answer (with the reason "forbidden" when it does not know the user), nf.Invalid
// when the configuration is wrong. The context bounds the opening only.
func Open(ctx context.Context, config Config) (*Store, error) {
	return openWith(ctx, config, nil)
}

// openWith is Open with a channel that starts the rounds of maintenance.
func openWith(ctx context.Context, config Config, rounds <-chan time.Time) (*Store, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Quota == 0 {
		config.Quota = DefaultQuota
	}
	if config.Dir != "" {
		return openInside(ctx, config, rounds)
	}
	return openOutside(ctx, config, rounds)
}

// check returns nf.Invalid when the configuration contradicts itself. It shows
// no endpoint that is wrong: there may be a password in it.
func (c Config) check() error {
	encrypted := 0
	for _, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return nf.E(nf.Invalid, "open", "etcd", errors.New("an endpoint is written as http://host:port or https://host:port"))
		}
		if u.Scheme == "https" {
			encrypted++
		}
	}
	var wrong string
	switch {
	case (c.Dir == "") == (len(c.Endpoints) == 0):
		wrong = "either a folder or endpoints are needed"
	case encrypted > 0 && encrypted < len(c.Endpoints):
		wrong = "the endpoints are all encrypted or none of them"
	case encrypted == 0 && c.CA+c.Cert+c.Key != "":
		wrong = "certificates are for endpoints that are encrypted"
	case (c.Cert == "") != (c.Key == ""):
		wrong = "a certificate and its key come together"
	case (c.User == "") != (len(c.Password) == 0):
		wrong = "a user and a password come together"
	case c.Dir != "" && c.User != "":
		wrong = "the server inside this process has no users"
	default:
		return nil
	}
	return nf.E(nf.Invalid, "open", "etcd", errors.New(wrong))
}

func (c Config) tls() bool {
	return len(c.Endpoints) > 0 && strings.HasPrefix(c.Endpoints[0], "https:")
}

func openOutside(ctx context.Context, config Config, rounds <-chan time.Time) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client, err := dial(ctx, config)
	if err != nil {
		return nil, err
	}
	members := clientv3.RetryMaintenanceClient(client, client.ActiveConnection())
	s := newStore(client, config, rounds)
	s.status = func(ctx context.Context) (*etcdserverpb.StatusResponse, error) {
		return members.Status(ctx, &etcdserverpb.StatusRequest{})
	}
	if err := s.Healthy(ctx); err != nil {
		subject := "etcd at " + strings.Join(config.Endpoints, ",")
		return nil, nf.E(nf.KindOf(err), "open", subject, errors.Join(err, client.Close()))
	}
	s.maintenance.start(ctx)
	return s, nil
}

func openInside(ctx context.Context, config Config, rounds <-chan time.Time) (*Store, error) {
	server, err := start(ctx, config)
	if err != nil {
		return nil, err
	}
	s := newStore(v3client.New(server.etcd.Server), config, rounds)
	s.server = server
	s.status = func(ctx context.Context) (*etcdserverpb.StatusResponse, error) {
		status, err := s.client.Status(ctx, "")
		return (*etcdserverpb.StatusResponse)(status), err
	}
	s.maintenance.start(ctx)
	// The quota may have been raised, and the start has defragmented the file. If
	// that was not enough, the next write raises the alarm again.
	if err := s.disarm(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newStore(client *clientv3.Client, config Config, rounds <-chan time.Time) *Store {
	s := &Store{client: client, patience: answerTime}
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s.maintenance = &maintenance{store: s, log: log, rounds: rounds}
	return s
}

// disarm disarms the alarm NOSPACE of an embedded server.
func (s *Store) disarm(ctx context.Context) error {
	for _, alarm := range s.server.etcd.Server.Alarms() {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		_, err := callEtcd(ctx, s, func() (*clientv3.AlarmResponse, error) {
			return s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm))
		})
		if err != nil {
			return s.translate(ctx, "disarm", "etcd", err)
		}
	}
	return nil
}
