package onapstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
	"go.uber.org/zap"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config locates the databases of a plugin. Mongo is required.
type Config struct {
	Mongo    nf.Secret // mongodb://… or mongodb+srv://…
	Database string    // default: the one in the URI's path, otherwise k8splugin
	Etcd     *Etcd     // nil: no configurations are read
}

// Etcd locates the configurations.
type Etcd struct {
	Endpoints      []string // the client URLs
	CA, Cert, Key  string   // files; empty: none
	User, Password nf.Secret
}

// database is the default name of the plugin's database.
const database = "k8splugin"

// answerTime is the timeout of a database call.
const answerTime = 15 * time.Second

// documents is the read-only part of a collection.
type documents interface {
	Find(ctx context.Context, filter any, opts ...options.Lister[options.FindOptions]) (*mongo.Cursor, error)
	FindOne(ctx context.Context, filter any, opts ...options.Lister[options.FindOneOptions]) *mongo.SingleResult
}

// keys is the read-only part of etcd.
type keys interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
}

// Store is connected to the databases of a plugin. Create it with Open.
type Store struct {
	collection func(name string) documents
	keys       keys // nil: no etcd
	close      []func() error
}

// Open connects to the databases and waits until they respond. It returns
// nf.Unreachable if one does not respond, with the reason "forbidden" if it
// rejects the user, and nf.Invalid if the configuration is invalid. No error
// shows a password. The context limits only the opening.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{}
	err := s.openMongo(ctx, cfg)
	if err == nil && cfg.Etcd != nil {
		err = s.openEtcd(ctx, *cfg.Etcd)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() error {
	var all []error
	for _, end := range s.close {
		all = append(all, end())
	}
	return errors.Join(all...)
}

func (s *Store) openMongo(ctx context.Context, cfg Config) error {
	const op, subject = "open", "ONAP's MongoDB"
	uri, err := connstring.ParseAndValidate(string(cfg.Mongo))
	opts := options.Client().ApplyURI(string(cfg.Mongo))
	if err != nil || opts.Validate() != nil {
		// The driver's message repeats the text that it could not parse, and
		// that may contain a password.
		return nf.E(nf.Invalid, op, subject, errors.New("its URI is not mongodb://[user:password@]host[:port][,…][/database][?options], with user and password percent-encoded"))
	}
	opts.SetReadPreference(readpref.PrimaryPreferred()).SetRetryWrites(false).SetServerSelectionTimeout(answerTime)
	client, err := mongo.Connect(opts)
	if err != nil {
		return nf.E(nf.Invalid, op, subject, errors.New("the options of its URI are contradictory"))
	}
	kept := context.WithoutCancel(ctx)
	s.close = append(s.close, func() error {
		ctx, cancel := context.WithTimeout(kept, answerTime)
		defer cancel()
		return client.Disconnect(ctx)
	})
	db := client.Database(cmp.Or(cfg.Database, uri.Database, database))
	s.collection = func(name string) documents { return db.Collection(name) }
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return unreadable(op, subject+" at "+strings.Join(opts.Hosts, ","), client.Ping(ctx, nil))
}

func (s *Store) openEtcd(ctx context.Context, cfg Etcd) error {
	const op, subject = "open", "ONAP's etcd"
	var secure *tls.Config
	if len(cfg.Endpoints) > 0 && strings.HasPrefix(cfg.Endpoints[0], "https://") {
		var err error
		files := transport.TLSInfo{TrustedCAFile: cfg.CA, CertFile: cfg.Cert, KeyFile: cfg.Key}
		if secure, err = files.ClientConfig(); err != nil {
			return nf.E(nf.Invalid, op, subject, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	// The client keeps its context, which must not end with this one.
	kept, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	defer stop()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, TLS: secure, Username: string(cfg.User), Password: string(cfg.Password),
		Context: kept, Logger: zap.NewNop(),
	})
	if err != nil {
		end()
		return unreadable(op, subject, err)
	}
	s.close = append(s.close, func() error {
		defer end()
		return client.Close()
	})
	s.keys = clientv3.NewKV(client)
	_, err = s.keys.Get(ctx, configRoot, clientv3.WithCountOnly())
	return unreadable(op, subject+" at "+strings.Join(cfg.Endpoints, ","), err)
}
