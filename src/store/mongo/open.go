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

// Config says where the database is.
type Config struct {
	URI      nf.Secret    // mongodb://… or mongodb+srv://…, with user, password and TLS as MongoDB writes them
	Database string       // its name; that in the path of the URI when empty, or else "k8splugin"
	Logger   *slog.Logger // which servers come and go; nowhere when nil
}

const defaultDatabase = "k8splugin"

// answerTime is how long Open waits for the database, and every call for its
// answer, unless the caller is less patient. An election takes less.
const answerTime = 15 * time.Second

// closeTime is how long Close waits for the calls that are under way.
const closeTime = 5 * time.Second

// Open returns the database when it is ready to be used: nf.Unreachable when it
// does not answer (with the reason "forbidden" when it does not know the user),
// nf.Invalid when the configuration is wrong. No error shows the password. The
// context bounds the opening only.
func Open(ctx context.Context, config Config) (*Store, error) {
	opts, database, err := read(config)
	if err != nil {
		return nil, err
	}
	subject := "MongoDB at " + strings.Join(opts.Hosts, ",")
	client, err := mongo.Connect(opts)
	if err != nil {
		return nil, nf.E(nf.Invalid, "open", subject, errors.New("the options of its URI contradict each other"))
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

// find asks the server what it is, and reads from it as that allows: a server
// that stands alone refuses to ask others whether it is the primary. What it has
// acknowledged it knows.
func (s *Store) find(ctx context.Context, db *mongo.Database) error {
	var hello struct {
		Set     string `bson:"setName"`
		Message string `bson:"msg"`
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return translate(ctx, "use", "MongoDB", err)
	}
	concern := readconcern.Local()
	if hello.Set != "" || hello.Message == "isdbgrid" { // a replica set, or mongos before some
		concern = readconcern.Linearizable()
	}
	s.single = db.Collection(collection, options.Collection().SetReadConcern(concern))
	s.ranges = db.Collection(collection, options.Collection().SetReadConcern(readconcern.Majority()))
	return s.Healthy(ctx)
}

// read returns the options of the URI, but for those that the store's promises
// rest on, and the name of the database.
//
// Writes are not repeated by the driver. A replica set tells a repeated write
// from a new one, so there it would be safe; but what calls itself a replica set
// need not do so (FerretDB does not), and then a compare-and-swap meets its own
// first attempt and reports a conflict that is none. Whoever uses the store must
// bear a write whose answer is lost in any case, and the next write waits for a
// new primary.
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

// blame says which part of a URI is wrong. The driver knows better, but repeats
// what it could not read, and a password may be anywhere in that.
func blame(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || scheme != "mongodb" && scheme != "mongodb+srv" {
		return "it begins with mongodb:// or mongodb+srv://"
	}
	valid := func(uri string) bool { return options.Client().ApplyURI(uri).Validate() == nil }
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if valid(scheme + "://user:password@" + rest) {
		return "the user or the password before the @ is not percent-encoded"
	}
	rest, _, _ = strings.Cut(rest, "?")
	if valid(scheme + "://" + rest) {
		return "the options after the ? are not valid, or do not go together"
	}
	return "the hosts are not written as host or host:port, or cannot be found"
}

// monitor logs which servers come and go.
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
			log.Warn("mongo: a server does not answer", attrs...)
		default:
			log.Info("mongo: a server answers", attrs...)
		}
	}}
}
