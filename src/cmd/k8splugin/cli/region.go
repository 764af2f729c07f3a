package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func regionCommand(s *session) *cobra.Command {
	return s.noun("region", "Register and manage cloud regions",
		regionAdd(s), regionList(s), regionShow(s), regionCapabilities(s), regionUpdate(s), regionGrant(s), regionRevoke(s), regionRemove(s))
}

// regionFlags holds the flags that describe a region.
type regionFlags struct {
	kubeconfig, context string
	access              string
	rotate              string
	lifetime            time.Duration
	description, owner  string
	namespace           string
	tenant              string
	labels              labelsFlag
	plugins             pluginsFlag
	interfaces          labelsFlag
}

func (f *regionFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster; - reads standard input")
	flags.StringVar(&f.context, "kube-context", "", "kubeconfig context to use instead of the current one")
	flags.StringVar(&f.access, "access", "", "YAML file with server, ca and one credential, instead of a kubeconfig; - reads standard input")
	flags.StringVar(&f.rotate, "rotate", "", "let the service renew the credential: token (of a service account) or certificate")
	flags.DurationVar(&f.lifetime, "credential-lifetime", 0, "lifetime of the credentials that --rotate renews, at least 10m (default 1h for tokens, 24h for certificates)")
	flags.StringVar(&f.description, "description", "", "description of the region")
	flags.StringVar(&f.namespace, "default-namespace", "", "namespace of new instances whose request names none")
	flags.StringVar(&f.tenant, "aai-tenant", "", "id of the region's tenant in A&AI whose objects are those of the instances")
	flags.Var(&f.labels, "label", "label; can be repeated")
	flags.Var(&f.plugins, "cni", "CNI plugin on the nodes, or =false for one that is absent; can be repeated")
	completeFlag(cmd, "rotate", fixed(string(nf.RotateToken), string(nf.RotateCertificate)))
	flags.Var(&f.interfaces, "interface", "name of an interface of the nodes, such as oam=eth1; can be repeated")
}

// credentials returns how the credential rotates, or nil.
func (f *regionFlags) credentials() (*wire.RegionCredentials, error) {
	switch {
	case f.lifetime != 0 && f.rotate == "":
		return nil, usagef("--credential-lifetime requires --rotate")
	case f.lifetime%time.Second != 0:
		return nil, usagef("--credential-lifetime must be a number of seconds, got %s", f.lifetime)
	case f.rotate == "":
		return nil, nil
	}
	return &wire.RegionCredentials{Rotate: nf.RotationKind(f.rotate), Lifetime: int64(f.lifetime / time.Second)}, nil
}

// connection reads how to connect to the region: the user's access, which only
// the server checks, or the kubeconfig in base64.
func (f *regionFlags) connection(in input) (access map[string]any, kubeconfig string, err error) {
	switch {
	case f.context != "" && f.kubeconfig == "":
		return nil, "", usagef("--kube-context requires --kubeconfig")
	case f.access != "" && f.kubeconfig != "":
		return nil, "", usagef("give --access or --kubeconfig, not both")
	case f.access != "":
		access, err = in.parameters([]string{f.access}, settings{})
		return access, "", err
	case f.kubeconfig == "":
		return nil, "", nil
	}
	text, err := in.readFile(f.kubeconfig)
	if err != nil {
		return nil, "", err
	}
	text, err = extract(text, f.context, filepath.Dir(f.kubeconfig))
	return nil, base64.StdEncoding.EncodeToString(text), err
}

// regionCreate is a request to register a region with the user's access.
type regionCreate struct {
	wire.RegionCreate

	Access map[string]any `json:"access,omitzero"`
}

func regionAdd(s *session) *cobra.Command {
	var f regionFlags
	cmd := &cobra.Command{
		Use:   "add NAME --kubeconfig FILE | --access FILE",
		Short: "Register a cluster as a cloud region",
		Long: `Register a Kubernetes cluster as a cloud region.

The command sends only one context of the kubeconfig: the current one, or the one
that --kube-context names. The certificate, key and token files that this context
refers to are included. Instead of a kubeconfig, --access names a YAML file with
the fields of access in the API: server, ca, insecure_skip_tls_verify, and token,
username and password, client_certificate and client_key, or oidc. With
service_account, the server renews the token. --rotate token does so for a
kubeconfig with the token of a service account. --rotate certificate renews the
client certificate. The server connects to the cluster before it registers the
region.`,
		Example: "  k8splugin region add east --kubeconfig ~/.kube/config --kube-context east-admin\n" +
			"  k8splugin region add west --access west.yaml --default-namespace edge",
		Args: oneName,
	}
	f.define(cmd)
	cmd.Flags().StringVar(&f.owner, "owner", "", "owner of the region")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if f.kubeconfig == "" && f.access == "" {
			return misused(cmd, errors.New("--kubeconfig or --access is required"))
		}
		access, kubeconfig, err := f.connection(s.in)
		if err != nil {
			return err
		}
		credentials, err := f.credentials()
		if err != nil {
			return err
		}
		body := regionCreate{wire.RegionCreate{ID: args[0], RegionEdit: wire.RegionEdit{
			Owner: f.owner, Description: f.description, Labels: present(f.labels.labels), Plugins: f.plugins.declared(), Interfaces: present(f.interfaces.labels), Namespace: f.namespace, AAITenant: f.tenant, Kubeconfig: kubeconfig, Credentials: credentials,
		}}, access}
		a, err := c.send(ctx, ask(api.NewCreateCloudRegionRequestWithBody(root, nil, jsonMedia, nil)), body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, regionColumns)
	})
	return cmd
}

func regionUpdate(s *session) *cobra.Command {
	f := regionFlags{labels: labelsFlag{removable: true}, plugins: pluginsFlag{removable: true}, interfaces: labelsFlag{removable: true}}
	parent := ""
	cmd := &cobra.Command{
		Use:               "update NAME",
		Short:             "Update a region",
		Long:              "Update a region's labels, description or credentials. --label key- removes a label, --cni\nplugin- a declared CNI plugin, and --interface name- the name of an interface. --parent says\nwhich region has the Cluster of the region after a move (clusterctl move).",
		Args:              oneName,
		ValidArgsFunction: s.ids(regions(), false),
	}
	f.define(cmd)
	cmd.Flags().StringVar(&parent, "parent", "", "cloud region that has the region's Cluster now; changed alone")
	completeFlag(cmd, "parent", s.ids(regions(), false))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		access, kubeconfig, err := f.connection(s.in)
		if err != nil {
			return err
		}
		credentials, err := f.credentials()
		if err != nil {
			return err
		}
		body := map[string]any{} // a merge patch: an empty text removes the present one
		for _, field := range []struct {
			given bool
			name  string
			value any
		}{
			{cmd.Flags().Changed("description"), "description", f.description},
			{cmd.Flags().Changed("default-namespace"), "default_namespace", f.namespace}, {cmd.Flags().Changed("aai-tenant"), "aai_tenant", f.tenant},
			{f.labels.labels != nil, "labels", f.labels.labels},
			{f.plugins.all != nil, "cni_plugins", f.plugins.all}, {f.interfaces.labels != nil, "interfaces", f.interfaces.labels},
			{access != nil, "access", access}, {kubeconfig != "", "kubeconfig", kubeconfig}, {credentials != nil, "credentials", credentials},
			{parent != "", "parent", wire.ParentPatch{Region: parent}},
		} {
			if field.given {
				body[field.name] = field.value
			}
		}
		if len(body) == 0 {
			return usagef("nothing to change: give --label, --cni, --interface, --description, --default-namespace, --aai-tenant, --kubeconfig, --access, --rotate or --parent")
		}
		r := ask(api.NewUpdateCloudRegionRequestWithBody(root, args[0], mergePatch, nil))
		a, err := c.send(ctx, r, body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, regionColumns)
	})
	return cmd
}

func regionList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List cloud regions", regions(), regionColumns)
	q.add(cmd, "condition", "condition", "filter by condition: unknown, available, expiring or unreachable")
	q.labels(cmd)
	q.pages(cmd)
	completeFlag(cmd, "condition", fixed("unknown", "available", "expiring", "unreachable"))
	return cmd
}

func regionColumns(now clock) []column[wire.Region] {
	return []column[wire.Region]{
		{"NAME", false, func(r wire.Region) string { return r.ID }},
		{"OWNER", false, func(r wire.Region) string { return r.Owner }},
		{"VERSION", false, func(r wire.Region) string { return r.Version }},
		{"CONDITION", false, func(r wire.Region) string { return string(stateOf(r).Condition) }},
		{"SERVER", false, func(r wire.Region) string { return r.Server }},
		{"AGE", false, func(r wire.Region) string { return now.age(r.Created) }},
		{"MESSAGE", true, func(r wire.Region) string { return stateOf(r).Message }},
		{"LABELS", true, func(r wire.Region) string { return pairsOf(r.Labels) }},
		{"DESCRIPTION", true, func(r wire.Region) string { return r.Description }},
	}
}

func regionShow(s *session) *cobra.Command {
	return s.showCommand("show NAME", "Show a cloud region", regions(), s.out.describeRegion)
}

func (pr *printer) describeRegion(w io.Writer, a answer) error {
	var r wire.Region
	if err := a.decode(&r); err != nil {
		return err
	}
	defer pr.warnExpiry(r)
	now := stateOf(r)
	state := string(now.Condition)
	if now.Reason != "" {
		state += " (" + now.Reason + ")"
	}
	if since := pr.clock.stamp(now.Since); since != "" {
		state += " since " + since
	}
	breaker := string(now.Breaker)
	if retry := pr.clock.until(now.Retry); retry != "" {
		breaker += "; next request at " + retry
	}
	list := []field{
		{"Name", r.ID}, {"Owner", r.Owner}, {"Type", string(r.Type)}, {"Origin", string(r.Origin)}, {"Description", r.Description},
		{"Labels", pairsOf(r.Labels)}, {"Default namespace", r.Namespace}, {"A&AI tenant", r.AAITenant}, {"CNI plugins", pluginsOf(r.Plugins)}, {"Interfaces", pairsOf(r.Interfaces)}, {"Server", r.Server}, {"Version", r.Version},
		{"APIs", strings.Join(r.APIs, ", ")}, {"Used by", usersOf(r.VNFInstances, r.More)},
		{"A&AI", inventoryText(r.AAI, pr.clock)}, {"Condition", state}, {"Message", now.Message}, {"Checked", pr.clock.stamp(now.Checked)},
		{"Breaker", breaker}, {"Credential", credentialText(credentialOf(r), pr.clock)},
		{"Created", pr.clock.stamp(r.Created)}, {"Updated", pr.clock.stamp(r.Updated)},
	}
	for _, project := range slices.Sorted(maps.Keys(r.Tenants)) {
		list = append(list, field{"Tenant", project + ": " + tenant(r.Tenants[project]).String()})
	}
	return printFields(w, list)
}

// inventoryText says which cloud region of A&AI the access of a region is read from.
func inventoryText(a *wire.InventoryRegion, now clock) string {
	if a == nil {
		return ""
	}
	out := "follows cloud owner " + a.Owner
	if a.Place != "" {
		out += "; " + a.Place
	}
	if a.Reason != "" {
		out += "; " + a.Reason
	}
	if since := now.stamp(a.Vanished); since != "" {
		out += "; not in A&AI since " + since
	}
	return out
}

// stateOf returns the state of a region. It is zero if the server did not send
// it.
func stateOf(r wire.Region) (s wire.RegionState) {
	if r.State != nil {
		s = *r.State
	}
	return s
}

// credentialOf returns the credential of a region. It is zero if it is unknown.
func credentialOf(r wire.Region) (c wire.Credential) {
	if r.Credential != nil {
		c = *r.Credential
	}
	return c
}

// credentialText says what the credential of a region is, and how far its renewal is.
func credentialText(c wire.Credential, now clock) string {
	out := c.Kind
	if c.Rotates {
		out += ", renewed by the service"
	}
	if expires := now.until(c.Expires); expires != "" {
		out += ", expires " + expires
	}
	if c.Request != "" {
		out += "; CertificateSigningRequest " + c.Request + " is not answered"
	}
	if since := now.stamp(c.Failing); since != "" {
		out += "; not renewed since " + since
	}
	return out
}

// usersOf lists the instances that use a region or a package.
func usersOf(ids []string, more bool) string {
	if more {
		ids = append(slices.Clone(ids), "…")
	}
	return strings.Join(ids, ", ")
}

// warnExpiry warns if a region's credential expires and must be renewed manually.
func (pr *printer) warnExpiry(r wire.Region) {
	c := credentialOf(r)
	expires := c.Expires
	switch {
	case c.Rotates && c.Failing.IsZero(), !c.Rotates && expires.IsZero():
	case c.Rotates:
		pr.warn("cloud region " + r.ID + ": " + stateOf(r).Message)
	case !expires.After(pr.clock()):
		pr.warn("the credential of cloud region " + r.ID + " has expired; replace it: k8splugin region update " + r.ID + " --kubeconfig FILE")
	case stateOf(r).Condition == nf.RegionExpiring:
		pr.warn("the credential of cloud region " + r.ID + " expires " + pr.clock.until(expires) + "; replace it: k8splugin region update " + r.ID + " --kubeconfig FILE")
	}
}

func regionRemove(s *session) *cobra.Command {
	return s.deleteCommand("Deregister cloud regions; clusters do not change", regions())
}
