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

// Config configures the database: either Dir or Endpoints is set.
type Config struct {
	Dir       string       // folder of the embedded server; created if missing
	Endpoints []string     // client URLs of an outside cluster; all https:// or none
	CA        string       // file with the authorities that signed the nodes' certificates; empty: the system's
	Cert, Key string       // files with the client's certificate and its key; both or none
	User      string       // user of the cluster, if it has users; must be allowed to read and write all keys
	Password  nf.Secret    // the user's
	Logger    *slog.Logger // for warnings and errors of etcd; nil: none
	Quota     int64        // size of the embedded server's file above which writes are refused; 0: DefaultQuota
}

// The default quota of an embedded server, and the largest quota that etcd
// recommends. Both values are etcd's own.
const (
	DefaultQuota = 2 << 30
	MaxQuota     = 8 << 30
)

// answerTime is how long Open waits for an outside cluster, and every call for
// its response, unless the caller's context ends earlier. An election takes
// less.
const answerTime = 15 * time.Second

// Open returns the database when it is ready. It returns nf.Conflict at once if
// another process uses the folder, and nf.Invalid if the configuration is
// wrong. It returns nf.Unreachable if the cluster does not respond, with the
// reason "forbidden" if it does not accept the user. The context limits only
// the opening.
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

// check returns nf.Invalid if the configuration contradicts itself. The message
// does not contain an invalid endpoint, which may contain a password.
func (c Config) check() error {
	encrypted := 0
	for _, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return nf.E(nf.Invalid, "open", "etcd", errors.New("an endpoint must be http://host:port or https://host:port"))
		}
		if u.Scheme == "https" {
			encrypted++
		}
	}
	var wrong string
	switch {
	case (c.Dir == "") == (len(c.Endpoints) == 0):
		wrong = "give either a folder or endpoints"
	case encrypted > 0 && encrypted < len(c.Endpoints):
		wrong = "either all endpoints use TLS or none"
	case encrypted == 0 && c.CA+c.Cert+c.Key != "":
		wrong = "certificates require https endpoints"
	case (c.Cert == "") != (c.Key == ""):
		wrong = "a certificate and its key must be set together"
	case (c.User == "") != (len(c.Password) == 0):
		wrong = "a user and a password must be set together"
	case c.Dir != "" && c.User != "":
		wrong = "the embedded server does not support users"
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
