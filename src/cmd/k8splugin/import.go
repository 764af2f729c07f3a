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
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// importCommand takes over what another program manages.
func importCommand(p process) *cobra.Command {
	root := &cobra.Command{Use: "import", Short: "Take over what another program manages", Args: cobra.NoArgs}
	root.AddCommand(importONAPCommand(p))
	return root
}

func importONAPCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "onap", Short: "Take over an installation of ONAP's Multicloud K8s plugin", Args: cobra.NoArgs,
		Long: `Reads what ONAP's Multicloud K8s plugin has stored, and brings it into the store:
definitions, profiles, configuration templates, connections, and the instances
with their configurations. The objects of the instances become ours as they are:
nothing of them is changed but whose they are, and no pod is restarted.

The plugin must not run any more; its databases are only read. What is in the
store already stays as it is: repeating an import adds what is missing, and tells
what is there and different. The command ends with 1 when something could not be
brought over; the report says what, and why.

It opens the store itself: the embedded database must not be in use by a running
service then. With --dry-run everything is read, rendered and held against the
regions, and nothing is written.

The locations may be given by the environment, so that no password is on the
command line: K8SPLUGIN_MONGO and K8SPLUGIN_ETCD.`,
		Example: `  k8splugin import onap --mongo mongodb://multicloud-k8s-mongo --etcd multicloud-k8s-etcd:2379 --dry-run`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runImport(cmd, p) },
	}
	flags := cmd.Flags()
	configFlags(flags)
	flags.String("mongo", "", "MongoDB of the plugin: mongodb://[user:password@]host[:port][,…][/database][?options]; the database is k8splugin when none is named")
	flags.String("etcd", "", "etcd of the plugin, which has the configurations: [user:password@]host[:port][,…][?ca=FILE&cert=FILE&key=FILE&tls=true]; empty: there are none")
	flags.Bool("dry-run", false, "only tell what would be brought over")
	flags.StringP("output", "o", "table", "how the report is printed: table or json")
	return cmd
}

// importOrder is what an import is asked to do.
type importOrder struct {
	cfg  Config
	from onapstore.Config
	dry  bool
	json bool
}

func importOrderOf(cmd *cobra.Command, p process) (o importOrder, err error) {
	flags := cmd.Flags()
	if o.cfg, err = loadConfig(flags, p.getenv); err != nil {
		return o, err
	}
	location := func(name string) string { text, _ := flags.GetString(name); return text }
	o.dry, _ = flags.GetBool("dry-run")
	switch location("output") {
	case "table":
	case "json":
		o.json = true
	default:
		return o, cli.Usage(errors.New("--output is table or json"))
	}
	if location("mongo") == "" {
		return o, cli.Usage(errors.New("--mongo is missing: it says where the plugin's MongoDB is"))
	}
	o.from.Mongo = nf.Secret(location("mongo"))
	if text := location("etcd"); text != "" {
		if o.from.Etcd, err = etcdOf(text); err != nil {
			return o, cli.Usage(err)
		}
	}
	// What happens is in the report; the log is for what goes wrong besides.
	if !flags.Changed("log-level") {
		o.cfg.LogLevel = slog.LevelWarn.String()
	}
	if !flags.Changed("log-format") {
		o.cfg.LogFormat = "text"
	}
	// Nobody comes in.
	o.cfg.AccessFile, o.cfg.AuditFile, o.cfg.TLSCert, o.cfg.TLSKey, o.cfg.TLSClientCA = "", "", "", "", ""
	if o.dry {
		o.cfg.trial()
	}
	return o, nil
}

// trial makes a configuration one of which nothing is left.
func (c *Config) trial() {
	// Nothing renews a lease that nobody else sees.
	c.Lease = 24 * time.Hour
	if _, err := os.Stat(c.Data); c.Store == "etcd" && errors.Is(err, os.ErrNotExist) {
		// To open an embedded store is to make it, and its keys.
		c.Store, c.KeyFile, c.Keys = "memory", "", nil
	}
}

// etcdOf reads where etcd is. A scheme is not needed, and taken all the same.
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
	if report == nil {
		return err
	}
	if printed := report.print(p.stdout, o.json); err == nil {
		err = printed
	}
	if err == nil {
		err = report.err()
	}
	return err
}

// run carries out the import. The report is nil when nothing was begun.
func (o importOrder) run(ctx context.Context, p process) (report *importReport, err error) {
	from, err := onapstore.Open(ctx, o.from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	seen, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	see, err := o.cfg.sight(ctx, p)
	if err != nil {
		return nil, err
	}
	defer see.close(ctx)
	db, err := o.open(ctx, see)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	parts, err := assemble(ctx, o.cfg, db, see)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, parts.audit.Close()) }()
	im := newImporter(from, parts, db, o.dry)
	if o.dry {
		// Nobody carries out what is accepted.
		return im.report, im.run(ctx, seen)
	}
	running, ctx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(ctx)
	running.Go(func() error { return parts.engine.Run(working) })
	running.Go(func() error {
		defer stop()
		return im.run(ctx, seen)
	})
	return im.report, running.Wait()
}

// open opens the store: that of a trial keeps nothing.
func (o importOrder) open(ctx context.Context, see sight) (*vault, error) {
	v, err := o.vault(ctx, see)
	if nf.KindOf(err) == nf.Conflict && o.cfg.Store == "etcd" {
		return nil, nf.E(nf.Conflict, "import into", "the embedded store", fmt.Errorf("a running service has it open: stop that first (%w)", err))
	}
	return v, err
}

func (o importOrder) vault(ctx context.Context, see sight) (*vault, error) {
	if !o.dry {
		return openVault(ctx, o.cfg, see)
	}
	v, err := openRaw(ctx, o.cfg, see.log)
	if err != nil {
		return nil, err
	}
	v.db.KV = newShadow(v.db.KV)
	v.Store = seal.New(v.db.KV, v.keys)
	kek, err := v.keys.Primary(ctx)
	if err == nil {
		err = schema.Open(ctx, schema.Config{Raw: v.db.KV, Sealed: v.Store, SealedBy: kek.ID(), Migrations: migrations(v.Store), Logger: see.log})
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}
