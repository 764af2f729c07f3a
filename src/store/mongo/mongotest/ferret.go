// Package mongotest starts FerretDB, a server for MongoDB's wire protocol, in
// the process of a test. It is not a full replacement for MongoDB: concurrent
// updates of one document are not atomic. A client that relies on them must use
// one connection (maxPoolSize=1).
package mongotest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/FerretDB/FerretDB/ferretdb"
	"golang.org/x/sync/errgroup"
)

// Start starts an empty FerretDB that stops with the test, and returns its URI.
// A test that calls it cannot be parallel, and panics if it is.
func Start(t *testing.T) string {
	t.Helper()
	// FerretDB writes package variables whenever one is created. Setenv panics in
	// a parallel test.
	t.Setenv("K8SPLUGIN_TEST_FERRETDB", t.Name())
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: "file:" + t.TempDir() + "/?_pragma=synchronous(off)", // no test is about its disk
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all errgroup.Group
	all.Go(func() error { return server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := all.Wait(); err != nil {
			t.Error(err)
		}
	})
	return server.MongoDBURI()
}
