package mongo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo/mongotest"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// realServer names the variable with the URI of a MongoDB, in which the tests
// may make databases.
const realServer = "K8SPLUGIN_TEST_MONGO"

// TestStore holds the driver to the whole contract where there is a MongoDB.
// Where there is none, FerretDB stands in for it, over one connection and
// without the races: what it reads and writes for one command is not atomic, so
// that a race would fail for its own reasons.
func TestStore(t *testing.T) {
	if uri := os.Getenv(realServer); uri != "" {
		t.Run("MongoDB", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.KV { return open(t, uri) })
		})
		return
	}
	uri := mongotest.Start(t) + "?maxPoolSize=1"
	t.Run("FerretDB", func(t *testing.T) {
		storetest.RunSequential(t, func(t *testing.T) store.KV { return open(t, uri) })
	})
}

// TestLostAnswer applies writes whose responses are lost: no response says
// that they failed, and they are carried out once.
func TestLostAnswer(t *testing.T) {
	host := strings.Trim(strings.TrimPrefix(mongotest.Start(t), "mongodb://"), "/")
	name := rand.Text()
	direct := openDatabase(t, "mongodb://"+host, name)
	old, err := direct.Put(t.Context(), "changed", []byte("old"), store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(*Store) error{
		"created":  func(s *Store) error { _, err := s.Put(t.Context(), "created", []byte("new"), store.Absent); return err },
		"changed":  func(s *Store) error { _, err := s.Put(t.Context(), "changed", []byte("new"), old); return err },
		"whatever": func(s *Store) error { _, err := s.Put(t.Context(), "whatever", []byte("new"), store.Any); return err },
	}
	for key, call := range calls {
		t.Run(key, func(t *testing.T) {
			relay := storetest.StartRelay(t, host)
			s := openDatabase(t, "mongodb://"+relay.Addr(), name)
			relay.Mute()
			var lost errgroup.Group
			lost.Go(func() error { return call(s) })
			var e store.Entry
			for string(e.Value) != "new" {
				if e, err = direct.Get(t.Context(), key); err != nil && nf.KindOf(err) != nf.NotFound {
					t.Fatal(err)
				}
			}
			relay.HangUp()
			relay.Heal() // who tries again is answered
			if err := lost.Wait(); nf.KindOf(err) != nf.Unreachable {
				t.Errorf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
			}
			if now, err := direct.Get(t.Context(), key); err != nil || now.Revision != e.Revision {
				t.Errorf("it is written again: revision %d follows on %d, error %v", now.Revision, e.Revision, err)
			}
			if err := storetest.UntilHealthy(aMinute(t), s); err != nil {
				t.Errorf("the server is back, and it is not healthy: %v", err)
			}
		})
	}
}

// TestSilence has a server that takes everything and says nothing.
func TestSilence(t *testing.T) {
	relay := storetest.StartRelay(t, strings.Trim(strings.TrimPrefix(mongotest.Start(t), "mongodb://"), "/"))
	s := openDatabase(t, "mongodb://"+relay.Addr(), rand.Text())
	relay.Silence()
	s.patience = 500 * time.Millisecond
	_, getErr := s.Get(t.Context(), "key")
	_, putErr := s.Put(t.Context(), "key", nil, store.Any)
	var listErr error
	for _, listErr = range s.List(t.Context(), "", "") {
	}
	errs := map[string]error{
		"Get": getErr, "Put": putErr, "List": listErr, "Delete": s.Delete(t.Context(), "key", store.Any), "Healthy": s.Healthy(t.Context()),
	}
	for name, err := range errs {
		if nf.KindOf(err) != nf.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the error is %v (%s), want unreachable", name, err, nf.KindOf(err))
		}
	}
	relay.Heal()
	relay.HangUp()
	s.patience = answerTime
	if err := storetest.UntilHealthy(aMinute(t), s); err != nil {
		t.Errorf("it speaks again, and is not healthy: %v", err)
	}
}

func aMinute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestDocument is what others see: a backup, a migration, an older version.
func TestDocument(t *testing.T) {
	uri, name := mongotest.Start(t), rand.Text()
	s := openDatabase(t, uri, name)
	rev, err := s.Put(t.Context(), "a/b", nil, store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	var got bson.M
	if err := s.single.Database().Collection("records").FindOne(t.Context(), bson.D{}).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := bson.M{"_id": "a/b", "value": bson.Binary{Data: []byte{}}, "rev": int64(rev)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a document (-want +got):\n%s", diff)
	}
}

// TestConcerns wants of the server what the package promises.
func TestConcerns(t *testing.T) {
	opts, _, err := read(Config{URI: nf.Secret("mongodb://a/?w=1&journal=false&readPreference=secondary&retryWrites=true&readConcernLevel=local")})
	if err != nil {
		t.Fatal(err)
	}
	if w := opts.WriteConcern; w.W != "majority" || w.Journal == nil || !*w.Journal {
		t.Errorf("the write concern is %v, want that of a majority, with journals", w)
	}
	if *opts.RetryWrites {
		t.Error("the driver repeats writes")
	}
	if mode := opts.ReadPreference.Mode().String(); mode != "primary" {
		t.Errorf("reads go to %s, want the primary", mode)
	}
	if got := openDatabase(t, mongotest.Start(t), rand.Text()).single; got == nil {
		t.Error("a server that stands alone cannot be used")
	}
}

func TestOpenRefuses(t *testing.T) {
	const secret = "hunter2"
	cases := map[string]struct {
		reason string
		uri    string
		want   string // in the error
	}{
		"Nothing":  {"somewhere it must be", "", "must begin with"},
		"Scheme":   {"another protocol", "http://user:hunter2@a/", "must begin with"},
		"Password": {"a password is encoded", "mongodb://user:hunter2%zz@a/db", "percent-encoded"},
		"At":       {"a password is encoded", "mongodb://user:x@hunter2@a/db", "percent-encoded"},
		"Slash":    {"a password is encoded", "mongodb://user:x/hunter2@a/db", "percent-encoded"},
		"Host":     {"a port is a number", "mongodb://user:hunter2@a:hunter2/db", "hosts"},
		"NoHost":   {"somewhere it must be", "mongodb://user:hunter2@/db", "hosts"},
		"Option":   {"a number is a number", "mongodb://user:hunter2@a/?maxPoolSize=hunter2", "options"},
		"Together": {"one or the other", "mongodb://user:hunter2@a,b/?directConnection=true", "options"},
		"NoFile":   {"the file is missing", "mongodb://a/?tlsCertificateKeyFile=/nonexistent&tlsCertificateKeyFilePassword=hunter2", "options"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), Config{URI: nf.Secret(c.uri)})
			if err == nil {
				t.Fatalf("%s: it was opened (close: %v)", c.reason, s.Close())
			}
			if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: the error is %v (%s), want an invalid URI and %q", c.reason, err, nf.KindOf(err), c.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the password: %v", c.reason, err)
			}
		})
	}
}

// TestOpenSaysWhy wants more than that the time was up, and less than the
// password.
func TestOpenSaysWhy(t *testing.T) {
	const nobody = "127.0.0.1:1"
	var log strings.Builder
	config := Config{URI: nf.Secret("mongodb://user:hunter2@" + nobody), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Open(ctx, config)
	if nf.KindOf(err) != nf.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
	}
	for _, want := range []string{nobody, syscall.ECONNREFUSED.Error()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if said := fmt.Sprintf("%v %+v %v", err, config, log.String()); strings.Contains(said, "hunter2") {
		t.Errorf("the password is shown: %s", said)
	}
}

// TestOpenUnknownName has a name that does not exist: it may be known
// later, so the URI is not wrong.
func TestOpenUnknownName(t *testing.T) {
	_, err := Open(t.Context(), Config{URI: nf.Secret("mongodb+srv://user:hunter2@db.site.invalid/")})
	if nf.KindOf(err) != nf.Unreachable || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v (%s), want unreachable and no password", err, nf.KindOf(err))
	}
}

func TestDatabaseName(t *testing.T) {
	cases := map[string]struct {
		reason string
		config Config
		want   string
	}{
		"Default":    {"it has a name of its own", Config{URI: nf.Secret("mongodb://a")}, "k8splugin"},
		"Slash":      {"an empty path names nothing", Config{URI: nf.Secret("mongodb://u:p@a,b:1/?tls=true")}, "k8splugin"},
		"Path":       {"the URI names it", Config{URI: nf.Secret("mongodb://u:p%2Fx@a,b:1/records%20x?w=1")}, "records x"},
		"Config":     {"what is said twice is said last", Config{URI: nf.Secret("mongodb://a/x"), Database: "y"}, "y"},
		"Password":   {"a password that the driver bears with is none either", Config{URI: nf.Secret("mongodb://u:p?x@a/db?w=1")}, "db"},
		"UnixSocket": {"a socket's path is no name", Config{URI: nf.Secret("mongodb://%2Ftmp%2Fx.sock/z")}, "z"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got, err := read(c.config); err != nil || got != c.want {
				t.Errorf("%s: the database is %q, want %q; error %v", c.reason, got, c.want, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	duplicate := mongo.WriteErrors{{Code: 11000}}
	unknown := &mongo.WriteConcernError{Code: 64}
	cases := map[string]struct {
		reason string
		err    error
		there  bool
		kind   nf.Kind
		says   string // the reason in the error
	}{
		"Network":      {"nobody knows", errors.New("connection reset"), false, nf.Unreachable, ""},
		"Unauthorized": {"he may not", mongo.CommandError{Code: 13}, false, nf.Unreachable, "forbidden"},
		"NotAuthentic": {"he is not who he says", mongo.CommandError{Code: 18}, false, nf.Unreachable, "forbidden"},
		"DiskFull":     {"there is no room", mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 14031}}}, false, nf.Unreachable, "no-space"},
		"TooLarge":     {"there never is", mongo.CommandError{Code: 10334}, false, nf.TooLarge, ""},
		"NoMajority":   {"a majority has not answered", mongo.WriteException{WriteConcernError: unknown}, false, nf.Unreachable, ""},
		"Duplicate":    {"it is there", mongo.WriteException{WriteErrors: duplicate}, true, nf.Unreachable, ""},
		"PerhapsThere": {"it is there, and may be gone again", mongo.WriteException{WriteErrors: duplicate, WriteConcernError: unknown}, false, nf.Unreachable, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isThere(c.err); got != c.there {
				t.Errorf("%s: the key is there: %t, want %t", c.reason, got, c.there)
			}
			err := translate(t.Context(), "write", "a key", c.err)
			if nf.KindOf(err) != c.kind || nf.ReasonOf(err) != c.says || !errors.Is(err, c.err) && name == "Network" {
				t.Errorf("%s: the error is %v (%s, %q), want %s, %q", c.reason, err, nf.KindOf(err), nf.ReasonOf(err), c.kind, c.says)
			}
		})
	}
}

func TestNewRevision(t *testing.T) {
	seen := map[store.Revision]bool{}
	for range 10000 {
		r := newRevision()
		if r <= 0 || seen[r] {
			t.Fatalf("revision %d is not positive, or was seen: %t", r, seen[r])
		}
		seen[r] = true
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	uri := mongotest.Start(t)
	direct := openDatabase(t, uri, "test") // the server is in this process, and opens its files
	if _, err := direct.Put(t.Context(), "key", nil, store.Any); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	s, err := Open(t.Context(), Config{URI: nf.Secret(uri), Database: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "key", nil, store.Any); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// TestPages has a server cut a page short.
func TestPages(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries int
		size    int // of each
		want    bool
	}{
		"Empty":   {"there is nothing", 0, 0, false},
		"Last":    {"one more was asked for", pageLimit - 1, 1, false},
		"Full":    {"who knows", pageLimit, 1, true},
		"OneBig":  {"there was room", 7, store.MaxStored, false},
		"ManyBig": {"there was no room", 15, store.MaxStored, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			page := make([]record, c.entries)
			for i := range page {
				page[i].Value = make([]byte, c.size)
			}
			if got := isFull(page, pageLimit); got != c.want {
				t.Errorf("%s: there may be more: %t, want %t", c.reason, got, c.want)
			}
		})
	}
	if most := 15 * store.MaxStored; most < fullPage || fullPage > 16<<20-2*store.MaxStored {
		t.Error("a page that is cut is not taken for a full one")
	}
}

// open returns a separate, empty database, and removes it at the end. It tolerates
// a slow server.
func open(t *testing.T, uri string) *Store {
	t.Helper()
	s := openDatabase(t, uri, "k8splugin-test-"+rand.Text())
	s.patience = 5 * time.Minute
	t.Cleanup(func() {
		if err := s.single.Database().Drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openDatabase(t *testing.T, uri, name string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URI: nf.Secret(uri), Database: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
