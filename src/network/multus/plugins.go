package multus

import "github.com/multicloud-k8s/k8splugin/src/network/schema"

// The versions of CNI that a specification may ask for. 1.0.0 is understood by
// multus 4 and all plugins of this package.
var cniVersions = []string{"0.3.1", "0.4.0", defaultVersion}

const defaultVersion = "1.0.0"

// firewallVersion is the version that a chained firewall does not work with.
const firewallVersion = "0.3.1"

// tuning is the chained plugin that sets MAC addresses, and bandwidth the one
// that limits traffic.
const (
	tuning    = "tuning"
	bandwidth = "bandwidth"
	portmap   = "portmap"
	firewall  = "firewall"
)

// Fields that several plugins have.
var (
	link      = schema.Matching(schema.LinkPattern, "the name of an interface: 1 to 15 characters, without blanks, '/' and ':'")
	address   = schema.Parsed(schema.ParseAddress)
	ownPrefix = schema.Parsed(schema.ParseInterface)
	subnet    = schema.Parsed(schema.ParseSubnet)

	flag       = schema.Implied(schema.Boolean, false)
	usually    = schema.Implied(schema.Boolean, true)
	optLink    = schema.Optional(link)
	mtu        = schema.Optional(schema.Integer(schema.MinMTU, schema.MaxMTU))
	vlanID     = schema.Integer(0, 4094)
	trunkID    = schema.Optional(schema.Integer(1, 4094))
	number     = schema.Optional(schema.Integer(0, 1<<32-1))
	optText    = schema.Optional(schema.Text)
	optAddress = schema.Optional(address)
	onOff      = schema.Word("on", "off")
	masquerade = schema.Optional(schema.Word("iptables", "nftables"))

	dns = schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{
		"nameservers": schema.Optional(schema.List(address)), "domain": optText, "search": schema.Optional(schema.List(schema.Text)), "options": schema.Optional(schema.List(schema.Text)),
	}}))
	routes = schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{
		"dst": schema.Required(subnet), "gw": optAddress, "mtu": mtu, "advmss": number,
		"priority": number, "table": number, "scope": schema.Optional(schema.Integer(0, 255)),
	}})))
	addresses = schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{"address": schema.Required(ownPrefix), "gateway": optAddress}})))
)

// plugin is a main plugin: it makes the interface of the pod.
type plugin struct {
	shape     schema.Shape
	needsIPAM bool
	mac       macSetter
}

// macSetter says which plugin gives an interface the MAC address that an
// attachment asks for.
type macSetter int

const (
	ownMAC    macSetter = iota // the main plugin
	tunedMAC                   // tuning, if it is in the chain
	masterMAC                  // none: the address is that of the master
)

var plugins = map[string]plugin{
	"bridge": {shape: schema.Shape{
		Fields: map[string]schema.Field{
			"bridge": schema.Required(link), // the plugin's default, cni0, can be the bridge of the cluster network
			"vlan":   schema.Implied(vlanID, int64(0)), "preserveDefaultVlan": usually,
			"vlanTrunk": schema.Optional(schema.List(schema.Object(schema.Shape{
				Fields: map[string]schema.Field{"id": trunkID, "minID": trunkID, "maxID": trunkID},
				OneOf:  []string{"id", "minID"}, Together: [][2]string{{"minID", "maxID"}}, Ascending: [][2]string{{"minID", "maxID"}},
			}))),
			"isGateway": flag, "isDefaultGateway": flag, "forceAddress": flag, "ipMasq": flag, "ipMasqBackend": masquerade, "mtu": mtu,
			"hairpinMode": flag, "promiscMode": flag, "macspoofchk": flag, "enabledad": flag, "disableContainerInterface": flag, "portIsolation": flag,
		},
		Apart: [][2]string{{"vlan", "vlanTrunk"}, {"hairpinMode", "promiscMode"}, {"disableContainerInterface", "ipam"}},
		Needs: [][2]string{{"isGateway", "ipam"}, {"isDefaultGateway", "ipam"}, {"ipMasq", "ipam"}, {"ipMasqBackend", "ipMasq"}},
	}},
	"macvlan": {shape: schema.Shape{Fields: map[string]schema.Field{
		"master": optLink, "mode": schema.Filled(schema.Word("bridge", "private", "vepa", "passthru"), "bridge"),
		"mtu": mtu, "linkInContainer": flag, "bcqueuelen": number,
	}}},
	"ipvlan": {needsIPAM: true, mac: masterMAC, shape: schema.Shape{Fields: map[string]schema.Field{
		"master": optLink, "mode": schema.Filled(schema.Word("l2", "l3", "l3s"), "l2"), "mtu": mtu, "linkInContainer": flag,
	}}},
	"host-device": {mac: tunedMAC, shape: schema.Shape{
		Fields: map[string]schema.Field{"device": optLink, "hwaddr": schema.Optional(schema.Parsed(schema.ParseMAC)), "kernelpath": optText, "pciBusID": optText},
		OneOf:  []string{"device", "hwaddr", "kernelpath", "pciBusID", resourceField}, // with a resource, multus passes the device
	}},
	"vlan": {needsIPAM: true, mac: masterMAC, shape: schema.Shape{Fields: map[string]schema.Field{
		"master": schema.Required(link), "vlanId": schema.Implied(vlanID, int64(0)), "mtu": mtu, "linkInContainer": flag,
	}}},
	"ptp": {needsIPAM: true, mac: tunedMAC, shape: schema.Shape{
		Fields: map[string]schema.Field{"ipMasq": flag, "ipMasqBackend": masquerade, "mtu": mtu, "dns": dns},
		Needs:  [][2]string{{"ipMasqBackend", "ipMasq"}},
	}},
}

// devices are main plugins whose networks belong to other drivers: multus passes them a
// device of the network's resource.
var devices = map[string]plugin{
	"sriov": {shape: schema.Shape{
		Fields: map[string]schema.Field{
			resourceField: schema.Required(resourceValue),
			"vlan":        schema.Implied(vlanID, int64(0)), "vlanQoS": schema.Implied(schema.Integer(0, 7), int64(0)),
			"vlanProto": schema.Implied(schema.Word("802.1q", "802.1ad"), "802.1q"), "spoofchk": schema.Optional(onOff), "trust": schema.Optional(onOff),
			"link_state": schema.Optional(schema.Word("auto", "enable", "disable")), "min_tx_rate": number, "max_tx_rate": number,
		},
		Needs:     [][2]string{{"vlanQoS", "vlan"}, {"vlanProto", "vlan"}},
		Ascending: [][2]string{{"min_tx_rate", "max_tx_rate"}},
	}},
}

// mainOf returns the main plugin of a type.
func mainOf(kind string) plugin {
	if p, known := plugins[kind]; known {
		return p
	}
	return devices[kind]
}

// chained are the plugins that can follow the main one.
var chained = map[string]schema.Shape{
	tuning: {Fields: map[string]schema.Field{
		"sysctl": schema.Optional(schema.Texts), "mac": schema.Optional(schema.Parsed(schema.ParseMAC)), "promisc": flag, "mtu": mtu, "txQLen": number, "allmulti": flag, "dataDir": optText,
	}},
	bandwidth: {
		Fields: map[string]schema.Field{
			"ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst,
		},
		Together: [][2]string{{"ingressRate", "ingressBurst"}, {"egressRate", "egressBurst"}},
	},
	"sbr": {Fields: map[string]schema.Field{"table": number}},
	portmap: {
		Fields: map[string]schema.Field{
			"backend": masquerade, "snat": usually, "conditionsV4": schema.Optional(schema.List(schema.Text)), "conditionsV6": schema.Optional(schema.List(schema.Text)),
			"masqAll": flag, "markMasqBit": schema.Optional(schema.Integer(0, 31)), "externalSetMarkChain": optText,
		},
		Apart: [][2]string{{"externalSetMarkChain", "markMasqBit"}},
	},
	"vrf": {Fields: map[string]schema.Field{"vrfname": schema.Required(link), "table": number}},
	firewall: {Fields: map[string]schema.Field{
		"backend": schema.Optional(schema.Word("iptables", "firewalld", "nftables")), "iptablesAdminChainName": optText,
		"firewalldZone": optText, "ingressPolicy": schema.Implied(schema.Word("open", "same-bridge"), "open"),
	}},
}

// The limits of bandwidth in bits: the kernel counts bursts in 32 bits of bytes.
const (
	maxRate  = 1<<63 - 1
	maxBurst = 8<<32 - 1
)

var (
	rate  = schema.Optional(schema.Integer(1, maxRate))
	burst = schema.Optional(schema.Integer(1, maxBurst))
)

// ipam is a plugin that gives addresses to interfaces.
type ipam struct {
	shape schema.Shape
	noIPs string // why an attachment cannot ask for addresses; empty: it can
	check func(c *schema.Checker, path string, ipam map[string]any)
}

// The plugins for addresses that Connect distinguishes.
const (
	hostLocal   = "host-local"
	static      = "static"
	dhcp        = "dhcp"
	whereabouts = "whereabouts"
)

var (
	hostLocalRange  = map[string]schema.Field{"subnet": schema.Required(subnet), "rangeStart": optAddress, "rangeEnd": optAddress, "gateway": optAddress}
	whereaboutRange = map[string]schema.Field{"range": schema.Required(schema.Parsed(parseRange)), "range_start": optAddress, "range_end": optAddress, "exclude": schema.Optional(schema.List(schema.Parsed(parseExclude)))}
	dhcpOption      = schema.Parsed(parseOption)
)

var ipams = map[string]ipam{
	hostLocal: {check: checkHostLocal, shape: schema.Shape{
		Fields: map[string]schema.Field{
			"ranges": schema.Optional(schema.List(schema.List(schema.Object(schema.Shape{Fields: hostLocalRange})))),
			"subnet": schema.Optional(subnet), "rangeStart": optAddress, "rangeEnd": optAddress, "gateway": optAddress,
			"routes": routes, "dataDir": optText, "resolvConf": optText,
		},
		SomeOf: []string{"ranges", "subnet"},
		Needs:  [][2]string{{"rangeStart", "subnet"}, {"rangeEnd", "subnet"}, {"gateway", "subnet"}},
	}},
	static: {shape: schema.Shape{Fields: map[string]schema.Field{"addresses": addresses, "routes": routes, "dns": dns}}},
	dhcp: {noIPs: "the DHCP server gives the address", shape: schema.Shape{Fields: map[string]schema.Field{
		"daemonSocketPath": optText, "priority": number,
		"provide": schema.Optional(schema.List(schema.Object(schema.Shape{
			Fields: map[string]schema.Field{"option": schema.Required(dhcpOption), "value": optText, "fromArg": optText}, OneOf: []string{"value", "fromArg"},
		}))),
		"request": schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{"option": schema.Optional(dhcpOption), "skipDefault": flag}}))),
	}}},
	whereabouts: {
		check: checkWhereabouts,
		noIPs: "whereabouts gives the pod another address as well, and does not reserve this one; list the address in fixed of the network's specification",
		shape: schema.Shape{
			Fields: map[string]schema.Field{
				"range": schema.Optional(schema.Parsed(parseRange)), "range_start": optAddress, "range_end": optAddress, "exclude": schema.Optional(schema.List(schema.Parsed(parseExclude))),
				"ipRanges": schema.Optional(schema.List(schema.Object(schema.Shape{Fields: whereaboutRange}))), "gateway": optAddress, "routes": routes, "dns": dns, "addresses": addresses,
				"enable_overlapping_ranges": usually, "network_name": optText, "node_slice_size": optText,
				"leader_lease_duration": schema.Implied(schema.Integer(1, 1<<31-1), int64(1500)), "leader_renew_deadline": schema.Implied(schema.Integer(1, 1<<31-1), int64(1000)),
				"leader_retry_period": schema.Implied(schema.Integer(1, 1<<31-1), int64(500)),
				"log_file":            optText, "log_level": schema.Optional(schema.Word("debug", "verbose", "error", "panic")), "configuration_path": optText,
				"kubernetes": schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{"kubeconfig": schema.Required(schema.Text)}})), "reconciler_cron_expression": optText,
			},
			SomeOf: []string{"range", "ipRanges"},
			Needs:  [][2]string{{"range_start", "range"}, {"range_end", "range"}, {"exclude", "range"}},
		},
	},
}
