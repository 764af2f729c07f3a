package installer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// parameters are the value of nf.ClusterHostsParameter. Its names are those of Tacker, as far
// as Tacker has them.
type parameters struct {
	Script   string    `json:"script_path"`        // an artifact of the package; empty: the script of instantiate_end
	Remove   string    `json:"remove_script_path"` // empty: the script of terminate_end, or none
	VIM      string    `json:"vim_name"`           // the cloud region; empty: "kubernetes_vim_" with the id of the VNF
	Timeout  int       `json:"timeout"`            // in seconds; 0: that of the service
	FirstUse bool      `json:"trust_on_first_use"` // hosts need no host_key
	Options  []string  `json:"script_options"`     // arguments of the script
	Machines *machines `json:"machines"`           // that the hosts are; nil: the hosts exist
	Masters  nodes     `json:"master_node"`
	Workers  nodes     `json:"worker_node"`
	Proxy    struct {
		HTTP  string `json:"http_proxy"`
		HTTPS string `json:"https_proxy"`
		None  string `json:"no_proxy"`
		Nodes string `json:"k8s_node_cidr"`
	} `json:"proxy"`
}

// nodes are the hosts with one role. Their login is that of hosts without their own.
type nodes struct {
	login

	Hosts       []host `json:"hosts"`
	PodCIDR     string `json:"pod_cidr"`
	ClusterCIDR string `json:"cluster_cidr"` // subnet of Services
}

// machines are virtual machines of an OpenStack cloud, which become the hosts. Their login is
// that of the groups, for the user of the image.
type machines struct {
	Cloud          string   `json:"cloud_region_id"`
	Image          string   `json:"image"`
	Flavor         string   `json:"flavor"`
	Networks       []string `json:"networks"`
	KeyPair        string   `json:"key_pair"`
	SecurityGroups []string `json:"security_groups"`
	ControlPlanes  int      `json:"control_planes"` // 0: 1
	Workers        int      `json:"workers"`
}

type host struct {
	login

	Name    string `json:"name"` // empty: master1, worker1 and so on
	Address string `json:"address"`
	Port    int    `json:"port"` // empty: 22
	Key     string `json:"host_key"`
}

type login struct {
	User       string `json:"username"`
	Password   string `json:"password"`
	PrivateKey string `json:"private_key"` // PEM
	Passphrase string `json:"passphrase"`
}

const sshPort = 22

// read reads the parameter. Errors do not quote it.
func read(values map[string]any) (parameters, error) {
	var out parameters
	text, err := json.Marshal(values[nf.ClusterHostsParameter])
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		message := "must be an object with master_node and worker_node"
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			message = "has a value of a wrong type: " + strings.ReplaceAll(wrong.Field, "login.", "") // of the embedded struct
		}
		return out, invalid("", message)
	}
	switch given := len(out.Masters.Hosts) + len(out.Workers.Hosts); {
	case out.Machines != nil && given > 0:
		return out, invalid("machines", "contradicts the hosts of master_node and worker_node")
	case out.Machines == nil && len(out.Masters.Hosts) == 0:
		return out, invalid("master_node.hosts", "are missing: name the hosts with their addresses, or machines; the service does not find them by connection points")
	}
	return out, nil
}

// site returns the site that the parameters describe, without its scripts.
func (p parameters) site(id, project string) (nf.SiteRequest, error) {
	out := nf.SiteRequest{
		Site: nf.Site{
			ID: id, Region: p.region(id), Project: project, Driver: nf.SiteByScript, EveryHost: true, FirstUse: p.FirstUse,
			Parameters: map[string]any{}, Proxy: nf.SiteProxy{HTTP: p.Proxy.HTTP, HTTPS: p.Proxy.HTTPS, None: p.Proxy.None},
		},
		Secrets: nf.SiteSecrets{Hosts: map[string]nf.HostCredential{}, Options: p.Options},
		Timeout: time.Duration(p.Timeout) * time.Second,
	}
	if wrong := nf.CheckID(nf.ClusterHostsParameter+".vim_name", out.Site.Region); wrong != nil {
		return out, nf.E(nf.Invalid, string(nf.Instantiate), "the VNF", wrong)
	}
	if nodes := p.Proxy.Nodes; nodes != "" {
		out.Site.Proxy.None = strings.TrimPrefix(out.Site.Proxy.None+","+nodes, ",")
	}
	for name, value := range map[string]string{"pod_cidr": p.Masters.PodCIDR, "cluster_cidr": p.Masters.ClusterCIDR} {
		if value != "" {
			out.Site.Parameters[name] = value
		}
	}
	if p.Machines != nil {
		return out, p.create(&out)
	}
	for _, g := range []struct {
		field, name string
		role        nf.SiteRole
		nodes       nodes
	}{{"master_node", "master", nf.ControlPlane, p.Masters}, {"worker_node", "worker", nf.Worker, p.Workers}} {
		hosts, err := g.nodes.hosts(g.name, g.role, "additionalParams."+nf.ClusterHostsParameter+"."+g.field+".hosts", out.Secrets.Hosts)
		if err != nil {
			return out, err
		}
		out.Site.Hosts = append(out.Site.Hosts, hosts...)
	}
	return out, nil
}

// create has the site create its hosts. Their keys are pinned at the first connection.
func (p parameters) create(out *nf.SiteRequest) error {
	m := p.Machines
	out.Site.Machines = &nf.Machines{Cloud: m.Cloud, Image: m.Image, Flavor: m.Flavor, Networks: m.Networks, KeyPair: m.KeyPair, SecurityGroups: m.SecurityGroups}
	if faults := out.Site.Machines.Violations("additionalParams." + nf.ClusterHostsParameter + ".machines"); len(faults) > 0 {
		return nf.E(nf.Invalid, string(nf.Instantiate), "the VNF", faults)
	}
	out.Site.Hosts = nf.MachineHosts(p.Masters.User, cmp.Or(m.ControlPlanes, 1), m.Workers)
	for _, h := range out.Site.Hosts {
		own, field := p.Masters.login, "master_node"
		if h.Role == nf.Worker {
			own, field = loginOf(p.Workers.login, own), "worker_node"
		}
		if own.Password == "" && own.PrivateKey == "" {
			return invalid(field, "needs a password or a private_key")
		}
		out.Secrets.Hosts[h.Name] = own.credential()
	}
	return nil
}

// hosts returns the hosts, and adds their credentials to the others. At is the place of the
// list in a request.
func (n nodes) hosts(name string, role nf.SiteRole, at string, credentials map[string]nf.HostCredential) (out []nf.SiteHost, err error) {
	for i, h := range n.Hosts {
		h.Name = cmp.Or(h.Name, fmt.Sprintf("%s%d", name, i+1))
		own := loginOf(h.login, n.login)
		if own.Password == "" && own.PrivateKey == "" {
			return nil, wrong(fmt.Sprintf("%s[%d]", at, i), "needs a password or a private_key")
		}
		out = append(out, nf.SiteHost{Name: h.Name, Address: h.Address, Port: cmp.Or(h.Port, sshPort), User: own.User, Key: h.Key, Role: role})
		credentials[h.Name] = own.credential()
	}
	return out, nil
}

// Hosts reads a list of hosts with their logins, as master_node.hosts of
// nf.ClusterHostsParameter has it. At is its place in a request. It returns nf.Invalid for hosts that cannot be used, and for an
// empty list.
func Hosts(value any, at string) (hosts []nf.SiteHost, credentials map[string]nf.HostCredential, err error) {
	var n nodes
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &n.Hosts)
	}
	if err != nil || len(n.Hosts) == 0 {
		return nil, nil, wrong(at, "must be a list of hosts with address, host_key, username, and password or private_key")
	}
	credentials = map[string]nf.HostCredential{}
	if hosts, err = n.hosts("host", nf.Worker, at, credentials); err != nil {
		return nil, nil, err
	}
	if faults := nf.CheckHosts(at, hosts); len(faults) > 0 {
		return nil, nil, nf.E(nf.Invalid, "use", "the hosts", faults)
	}
	return hosts, credentials, nil
}

// region returns the id of the cloud region.
func (p parameters) region(vnf string) string { return cmp.Or(p.VIM, "kubernetes_vim_"+vnf) }

func (l login) credential() nf.HostCredential {
	return nf.HostCredential{PrivateKey: nf.Secret(l.PrivateKey), Passphrase: nf.Secret(l.Passphrase), Password: nf.Secret(l.Password)}
}

// loginOf returns the login of a host, which is the common one as far as it has none of its
// own.
func loginOf(own, common login) login {
	own.User = cmp.Or(own.User, common.User)
	if own.Password == "" && own.PrivateKey == "" {
		own.Password, own.PrivateKey, own.Passphrase = common.Password, common.PrivateKey, common.Passphrase
	}
	return own
}

func invalid(field, message string) error {
	at := "additionalParams." + nf.ClusterHostsParameter
	if field != "" {
		at += "." + field
	}
	return wrong(at, message)
}

func wrong(at, message string) error {
	return nf.E(nf.Invalid, "use", "the hosts", nf.Violations{{Field: at, Message: message}})
}
