package mongo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config configures the database.
type Config struct {
	URI      nf.Secret    // mongodb://… or mongodb+srv://…, with user, password and TLS in MongoDB's syntax
	Database string       // its name; empty: the one in the path of the URI, or else "k8splugin"
	Logger   *slog.Logger // for servers that become available or unavailable; nil: none
}

const defaultDatabase = "k8splugin"

// answerTime is how long Open waits for the database, and every call for its
// response, unless the caller's context ends earlier. An election takes less.
const answerTime = 15 * time.Second

// closeTime is how long Close waits for the calls in progress.
const closeTime = 5 * time.Second

// Open returns the database when it is ready. It returns nf.Invalid if the
// configuration is wrong. It returns nf.Unreachable if the database does not
// respond, with the reason "forbidden" if it does not accept the user. No error
// contains the password. The context limits only the opening.
func Open(ctx context.Context, config Config) (*Store, error) {
	opts, database, err := read(config)
	if err != nil {
		return nil, err
	}
	subject := "MongoDB at " + strings.Join(opts.Hosts, ",")
	client, err := mongo.Connect(opts)
	if err != nil {
		return nil, nf.E(nf.Invalid, "open", subject, errors.New("the options of its URI are contradictory"))
	}
	kept := context.WithoutCancel(ctx)
	s := &Store{patience: answerTime, close: func() error {
		ctx, cancel := context.WithTimeout(kept, closeTime)
		defer cancel()
		return client.Disconnect(ctx)
	}}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := s.find(ctx, client.Database(database)); err != nil {
		return nil, nf.E(nf.KindOf(err), "open", subject, errors.Join(err, s.Close()))
	}
	return s, nil
}

// find queries the type of the server and chooses the read concern for it. A
// standalone server rejects "linearizable", and does not need it: it has every
// write that it has acknowledged.
func (s *Store) find(ctx context.Context, db *mongo.Database) error {
	var hello struct {
		Set     string `bson:"setName"`
		Message string `bson:"msg"`
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return translate(ctx, "use", "MongoDB", err)
	}
	concern := readconcern.Local()
	if hello.Set != "" || hello.Message == "isdbgrid" { // a replica set, or mongos in front of replica sets
		concern = readconcern.Linearizable()
	}
	s.single = db.Collection(collection, options.Collection().SetReadConcern(concern))
	s.ranges = db.Collection(collection, options.Collection().SetReadConcern(readconcern.Majority()))
	return s.Healthy(ctx)
}

// read returns the options of the URI and the name of the database. It
// overrides those options on which the guarantees of the store depend.
//
// The driver does not retry writes. A replica set recognizes a retried write,
// so there it would be safe. But a server that presents itself as a replica set
// may not recognize it (FerretDB does not). A compare-and-swap then meets its
// own first attempt and reports a false conflict. Users of the store must
// handle a write whose response is lost in any case, and the next write waits
// for a new primary.
func read(config Config) (opts *options.ClientOptions, database string, err error) {
	uri, err := connstring.ParseAndValidate(string(config.URI))
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return nil, "", nf.E(nf.Unreachable, "read", "the URI of MongoDB", dns)
	}
	opts = options.Client().ApplyURI(string(config.URI))
	if err != nil || opts.Validate() != nil {
		return nil, "", nf.E(nf.Invalid, "read", "the URI of MongoDB", errors.New(blame(string(config.URI))))
	}
	journal := true
	opts.SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal})
	opts.SetReadPreference(readpref.Primary())
	opts.SetRetryWrites(false)
	opts.SetServerMonitor(monitor(config.Logger))
	if opts.AppName == nil {
		opts.SetAppName(defaultDatabase)
	}
	return opts, cmp.Or(config.Database, uri.Database, defaultDatabase), nil
}

// blame returns which part of a URI is wrong. The driver knows more, but its
// message quotes what it could not parse, which may contain a password.
func blame(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || scheme != "mongodb" && scheme != "mongodb+srv" {
		return "it must begin with mongodb:// or mongodb+srv://"
	}
	valid := func(uri string) bool { return options.Client().ApplyURI(uri).Validate() == nil }
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if valid(scheme + "://user:password@" + rest) {
		return "the user or the password before the @ is not percent-encoded"
	}
	rest, _, _ = strings.Cut(rest, "?")
	if valid(scheme + "://" + rest) {
		return "the options after the ? are invalid or contradictory"
	}
	return "the hosts are not host or host:port, or cannot be found"
}

// monitor logs when servers become available or unavailable.
func monitor(log *slog.Logger) *event.ServerMonitor {
	if log == nil {
		return nil
	}
	return &event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
		before, now := e.PreviousDescription.Kind, e.NewDescription.Kind
		attrs := []any{slog.String("server", e.Address.String()), slog.String("before", before), slog.String("now", now)}
		switch {
		case before == now:
		case now == "Unknown":
			log.Warn("MongoDB server unreachable", attrs...)
		default:
			log.Info("MongoDB server reachable", attrs...)
		}
	}}
}
