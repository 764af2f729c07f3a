package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapimport"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/dryrun"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
)

// importCommand groups the commands that import data of another program.
func importCommand(p process) *cobra.Command {
	root := &cobra.Command{Use: "import", Short: "Import the data of another program", Args: cobra.NoArgs}
	root.AddCommand(importONAPCommand(p), importTackerCommand(p))
	return root
}

func importONAPCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "onap", Short: "Import from ONAP's Multicloud K8s plugin", Args: cobra.NoArgs,
		Long: `Import the data of ONAP's Multicloud K8s plugin into the store: definitions,
profiles, configuration templates, connections, and the instances with their
configurations. The instances are adopted with their objects: only the ownership
of the objects changes, and no pod is restarted.

The plugin must no longer run. Its databases are only read. Existing records of
the store do not change: a repeated import adds missing records, and reports
existing records that differ. The exit code is 1 if anything differs or could
not be imported; the report lists it with the reason.

The command opens the store itself: stop a service that uses the embedded
database first. With --dry-run everything is read, rendered and compared with the
regions, and nothing is written.

To keep passwords off the command line, give the locations in the environment:
K8SPLUGIN_MONGO and K8SPLUGIN_ETCD.`,
		Example: `  k8splugin import onap --mongo mongodb://multicloud-k8s-mongo --etcd multicloud-k8s-etcd:2379 --dry-run`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runImport(cmd, p) },
	}
	flags := cmd.Flags()
	storeFlags(flags)
	flags.String("mongo", "", "MongoDB of the plugin: mongodb://[user:password@]host[:port][,…][/database][?options]; the default database is k8splugin")
	flags.String("etcd", "", "etcd of the plugin, with the configurations: [user:password@]host[:port][,…][?ca=FILE&cert=FILE&key=FILE&tls=true]; empty if there are none")
	flags.Bool("dry-run", false, "report the import without writing anything")
	flags.StringP("output", "o", "table", "format of the report: table or json")
	return cmd
}

// importOrder holds the arguments of an import.
type importOrder struct {
	cfg  Config
	from onapstore.Config
	dry  bool
	json bool
}

func importOrderOf(cmd *cobra.Command, p process) (o importOrder, err error) {
	flags := cmd.Flags()
	if o, err = storeOrderOf(cmd, p); err != nil {
		return o, err
	}
	location := func(name string) string { text, _ := flags.GetString(name); return text }
	if location("mongo") == "" {
		return o, cli.Usage(errors.New("--mongo is required: give the location of the plugin's MongoDB"))
	}
	o.from.Mongo = nf.Secret(location("mongo"))
	if text := location("etcd"); text != "" {
		if o.from.Etcd, err = etcdOf(text); err != nil {
			return o, cli.Usage(err)
		}
	}
	return o, nil
}

// storeOrderOf returns the arguments that every import has.
func storeOrderOf(cmd *cobra.Command, p process) (o importOrder, err error) {
	flags := cmd.Flags()
	if o.cfg, err = loadConfig(flags, p.getenv); err != nil {
		return o, err
	}
	o.dry, _ = flags.GetBool("dry-run")
	switch output, _ := flags.GetString("output"); output {
	case "table":
	case "json":
		o.json = true
	default:
		return o, cli.Usage(errors.New("--output: must be table or json"))
	}
	// The report has the results; the log is for other errors.
	if !flags.Changed("log-level") {
		o.cfg.LogLevel = slog.LevelWarn.String()
	}
	if !flags.Changed("log-format") {
		o.cfg.LogFormat = "text"
	}
	// An import does not serve requests.
	o.cfg.Keystone = keystoneSettings{}
	o.cfg.AccessFile, o.cfg.AuditFile, o.cfg.TLSCert, o.cfg.TLSKey, o.cfg.TLSClientCA = "", "", "", "", ""
	if o.dry {
		o.cfg.setDryRun()
	}
	return o, nil
}

// setDryRun changes the configuration to one that leaves no trace.
func (c *Config) setDryRun() {
	// The lease is not renewed, and other replicas do not see it.
	c.Lease = 24 * time.Hour
	if _, err := os.Stat(c.Data); c.Store == "etcd" && errors.Is(err, os.ErrNotExist) {
		// Opening an embedded store would create it and its keys.
		c.Store, c.KeyFile, c.Keys = "memory", "", nil
	}
}

// etcdOf parses the address of etcd. The scheme is optional.
func etcdOf(text string) (*onapstore.Etcd, error) {
	hosts, options, _ := strings.Cut(text, "?")
	if strings.HasPrefix(hosts, "https://") && options == "" {
		options = "tls=true"
	}
	for _, scheme := range []string{"etcd://", "http://", "https://"} {
		hosts = strings.ReplaceAll(hosts, scheme, "")
	}
	if options != "" {
		hosts += "?" + options
	}
	at, err := etcd.ParseLocation(hosts)
	if err != nil {
		return nil, err
	}
	return &onapstore.Etcd{
		Endpoints: at.Endpoints, CA: at.CA, Cert: at.Cert, Key: at.Key, User: nf.Secret(at.User), Password: at.Password,
	}, nil
}

func runImport(cmd *cobra.Command, p process) error {
	o, err := importOrderOf(cmd, p)
	if err != nil {
		return err
	}
	report, err := o.run(cmd.Context(), p)
	return o.print(p, report, err)
}

// print prints a report, and returns the error of the command. The report is nil if the
// import did not start.
func (o importOrder) print(p process, report *migration.Report, err error) error {
	if report == nil {
		return err
	}
	if printed := report.Print(p.stdout, o.json); err == nil {
		err = printed
	}
	if err == nil {
		err = report.Err()
	}
	return err
}

// run executes the import. The report is nil if the import did not start.
func (o importOrder) run(ctx context.Context, p process) (report *migration.Report, err error) {
	from, err := onapstore.Open(ctx, o.from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	seen, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	return o.within(ctx, p, func(db *secureStore, parts *service) (*migration.Report, error) {
		return o.copy(ctx, from, seen, db, parts)
	})
}

// within opens the store, runs an import with the parts of a service on it, and closes
// it. The report is nil if the import did not start.
func (o importOrder) within(ctx context.Context, p process, do func(*secureStore, *service) (*migration.Report, error)) (report *migration.Report, err error) {
	obs, err := o.cfg.observability(ctx, p)
	if err != nil {
		return nil, err
	}
	defer obs.close(ctx)
	db, err := o.open(ctx, obs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	parts, err := assemble(ctx, o.cfg, db, obs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, parts.audit.Close()) }()
	return do(db, parts)
}

// copy imports what was read from ONAP's store.
func (o importOrder) copy(ctx context.Context, from *onapstore.Store, seen onapstore.Installation, db *secureStore, parts *service) (report *migration.Report, err error) {
	im, err := onapimport.New(onapimport.Config{
		Content: from.Content, KV: db.kv, Bundles: parts.bundles, Regions: parts.catalog, Engine: parts.engine, Dry: o.dry,
		Open: func(r nf.Region) (onapimport.Cluster, error) { return parts.pool.Open(r.ID, r.Access) },
	})
	if err != nil {
		return nil, err
	}
	if o.dry {
		// A dry run does not execute the operations that it creates.
		return im.Run(ctx, seen)
	}
	running, ctx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(ctx)
	running.Go(func() error { return parts.workers.Run(working) })
	running.Go(func() (err error) {
		defer stop()
		report, err = im.Run(ctx, seen)
		return err
	})
	err = running.Wait()
	return report, err
}

// open opens the store. In a dry run, writes are not stored.
func (o importOrder) open(ctx context.Context, obs observability) (*secureStore, error) {
	v, err := o.secureStore(ctx, obs)
	if nf.KindOf(err) == nf.Conflict && o.cfg.Store == "etcd" {
		return nil, nf.E(nf.Conflict, "import into", "the embedded store", fmt.Errorf("it is in use by a running service; stop the service first (%w)", err))
	}
	return v, err
}

func (o importOrder) secureStore(ctx context.Context, obs observability) (*secureStore, error) {
	if !o.dry {
		return openSecureStore(ctx, o.cfg, obs, nil)
	}
	return openOver(ctx, o.cfg, obs.log, func(kv store.KV) store.KV { return dryrun.New(kv) })
}
