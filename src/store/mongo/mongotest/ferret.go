// Package mongotest starts a FerretDB, which speaks MongoDB's wire protocol, in
// the process of a test. It does not stand in for all of MongoDB: concurrent
// updates of one document are not atomic, so a client that relies on them asks
// for one connection (maxPoolSize=1).
package mongotest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/FerretDB/FerretDB/ferretdb"
	"golang.org/x/sync/errgroup"
)

// Start starts a FerretDB with no data, which ends with the test, and returns its
// URI. A test that calls it cannot be parallel, and panics if it is.
func Start(t *testing.T) string {
	t.Helper()
	// FerretDB writes variables of its package whenever one is made. Setenv is what
	// tells a parallel test.
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
