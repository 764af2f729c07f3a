package multus

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
	link      = matching(linkPattern, "the name of an interface: 1 to 15 characters, without blanks, '/' and ':'")
	address   = parsed(parseAddress)
	ownPrefix = parsed(parseInterface)
	subnet    = parsed(parseSubnet)

	flag       = implied(boolean, false)
	usually    = implied(boolean, true)
	optLink    = optional(link)
	mtu        = optional(integer(minMTU, maxMTU))
	vlanID     = integer(0, 4094)
	trunkID    = optional(integer(1, 4094))
	number     = optional(integer(0, 1<<32-1))
	optText    = optional(text)
	optAddress = optional(address)
	masquerade = optional(word("iptables", "nftables"))

	dns = optional(object(shape{fields: map[string]field{
		"nameservers": optional(list(address)), "domain": optText, "search": optional(list(text)), "options": optional(list(text)),
	}}))
	routes = optional(list(object(shape{fields: map[string]field{
		"dst": required(subnet), "gw": optAddress, "mtu": mtu, "advmss": number,
		"priority": number, "table": number, "scope": optional(integer(0, 255)),
	}})))
	addresses = optional(list(object(shape{fields: map[string]field{"address": required(ownPrefix), "gateway": optAddress}})))
)

// plugin is a main plugin: it makes the interface of the pod.
type plugin struct {
	shape     shape
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
	"bridge": {shape: shape{
		fields: map[string]field{
			"bridge": required(link), // the plugin's default, cni0, can be the bridge of the cluster network
			"vlan":   implied(vlanID, int64(0)), "preserveDefaultVlan": usually,
			"vlanTrunk": optional(list(object(shape{
				fields: map[string]field{"id": trunkID, "minID": trunkID, "maxID": trunkID},
				oneOf:  []string{"id", "minID"}, together: [][2]string{{"minID", "maxID"}}, ascending: [][2]string{{"minID", "maxID"}},
			}))),
			"isGateway": flag, "isDefaultGateway": flag, "forceAddress": flag, "ipMasq": flag, "ipMasqBackend": masquerade, "mtu": mtu,
			"hairpinMode": flag, "promiscMode": flag, "macspoofchk": flag, "enabledad": flag, "disableContainerInterface": flag, "portIsolation": flag,
		},
		apart: [][2]string{{"vlan", "vlanTrunk"}, {"hairpinMode", "promiscMode"}, {"disableContainerInterface", "ipam"}},
		needs: [][2]string{{"isGateway", "ipam"}, {"isDefaultGateway", "ipam"}, {"ipMasq", "ipam"}, {"ipMasqBackend", "ipMasq"}},
	}},
	"macvlan": {shape: shape{fields: map[string]field{
		"master": optLink, "mode": filled(word("bridge", "private", "vepa", "passthru"), "bridge"),
		"mtu": mtu, "linkInContainer": flag, "bcqueuelen": number,
	}}},
	"ipvlan": {needsIPAM: true, mac: masterMAC, shape: shape{fields: map[string]field{
		"master": optLink, "mode": filled(word("l2", "l3", "l3s"), "l2"), "mtu": mtu, "linkInContainer": flag,
	}}},
	"host-device": {mac: tunedMAC, shape: shape{
		fields: map[string]field{"device": optLink, "hwaddr": optional(parsed(parseMAC)), "kernelpath": optText, "pciBusID": optText},
		oneOf:  []string{"device", "hwaddr", "kernelpath", "pciBusID", resourceField}, // with a resource, multus passes the device
	}},
	"vlan": {needsIPAM: true, mac: masterMAC, shape: shape{fields: map[string]field{
		"master": required(link), "vlanId": implied(vlanID, int64(0)), "mtu": mtu, "linkInContainer": flag,
	}}},
	"ptp": {needsIPAM: true, mac: tunedMAC, shape: shape{
		fields: map[string]field{"ipMasq": flag, "ipMasqBackend": masquerade, "mtu": mtu, "dns": dns},
		needs:  [][2]string{{"ipMasqBackend", "ipMasq"}},
	}},
}

// chained are the plugins that can follow the main one.
var chained = map[string]shape{
	tuning: {fields: map[string]field{
		"sysctl": optional(texts), "mac": optional(parsed(parseMAC)), "promisc": flag, "mtu": mtu, "txQLen": number, "allmulti": flag, "dataDir": optText,
	}},
	bandwidth: {
		fields: map[string]field{
			"ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst,
		},
		together: [][2]string{{"ingressRate", "ingressBurst"}, {"egressRate", "egressBurst"}},
	},
	"sbr": {fields: map[string]field{"table": number}},
	portmap: {
		fields: map[string]field{
			"backend": masquerade, "snat": usually, "conditionsV4": optional(list(text)), "conditionsV6": optional(list(text)),
			"masqAll": flag, "markMasqBit": optional(integer(0, 31)), "externalSetMarkChain": optText,
		},
		apart: [][2]string{{"externalSetMarkChain", "markMasqBit"}},
	},
	"vrf": {fields: map[string]field{"vrfname": required(link), "table": number}},
	firewall: {fields: map[string]field{
		"backend": optional(word("iptables", "firewalld", "nftables")), "iptablesAdminChainName": optText,
		"firewalldZone": optText, "ingressPolicy": implied(word("open", "same-bridge"), "open"),
	}},
}

// The limits of bandwidth in bits: the kernel counts bursts in 32 bits of bytes.
const (
	maxRate  = 1<<63 - 1
	maxBurst = 8<<32 - 1
)

var (
	rate  = optional(integer(1, maxRate))
	burst = optional(integer(1, maxBurst))
)

// ipam is a plugin that gives addresses to interfaces.
type ipam struct {
	shape shape
	noIPs string // why an attachment cannot ask for addresses; empty: it can
	check func(c *checker, path string, ipam map[string]any)
}

// The plugins for addresses that Connect distinguishes.
const (
	hostLocal   = "host-local"
	static      = "static"
	dhcp        = "dhcp"
	whereabouts = "whereabouts"
)

var (
	hostLocalRange  = map[string]field{"subnet": required(subnet), "rangeStart": optAddress, "rangeEnd": optAddress, "gateway": optAddress}
	whereaboutRange = map[string]field{"range": required(parsed(parseRange)), "range_start": optAddress, "range_end": optAddress, "exclude": optional(list(parsed(parseExclude)))}
	dhcpOption      = parsed(parseOption)
)

var ipams = map[string]ipam{
	hostLocal: {check: checkHostLocal, shape: shape{
		fields: map[string]field{
			"ranges": optional(list(list(object(shape{fields: hostLocalRange})))),
			"subnet": optional(subnet), "rangeStart": optAddress, "rangeEnd": optAddress, "gateway": optAddress,
			"routes": routes, "dataDir": optText, "resolvConf": optText,
		},
		someOf: []string{"ranges", "subnet"},
		needs:  [][2]string{{"rangeStart", "subnet"}, {"rangeEnd", "subnet"}, {"gateway", "subnet"}},
	}},
	static: {shape: shape{fields: map[string]field{"addresses": addresses, "routes": routes, "dns": dns}}},
	dhcp: {noIPs: "the DHCP server gives the address", shape: shape{fields: map[string]field{
		"daemonSocketPath": optText, "priority": number,
		"provide": optional(list(object(shape{
			fields: map[string]field{"option": required(dhcpOption), "value": optText, "fromArg": optText}, oneOf: []string{"value", "fromArg"},
		}))),
		"request": optional(list(object(shape{fields: map[string]field{"option": optional(dhcpOption), "skipDefault": flag}}))),
	}}},
	whereabouts: {
		check: checkWhereabouts,
		noIPs: "whereabouts gives the pod another address as well, and does not reserve this one; list the address in fixed of the network's specification",
		shape: shape{
			fields: map[string]field{
				"range": optional(parsed(parseRange)), "range_start": optAddress, "range_end": optAddress, "exclude": optional(list(parsed(parseExclude))),
				"ipRanges": optional(list(object(shape{fields: whereaboutRange}))), "gateway": optAddress, "routes": routes, "dns": dns, "addresses": addresses,
				"enable_overlapping_ranges": usually, "network_name": optText, "node_slice_size": optText,
				"leader_lease_duration": implied(integer(1, 1<<31-1), int64(1500)), "leader_renew_deadline": implied(integer(1, 1<<31-1), int64(1000)),
				"leader_retry_period": implied(integer(1, 1<<31-1), int64(500)),
				"log_file":            optText, "log_level": optional(word("debug", "verbose", "error", "panic")), "configuration_path": optText,
				"kubernetes": optional(object(shape{fields: map[string]field{"kubeconfig": required(text)}})), "reconciler_cron_expression": optText,
			},
			someOf: []string{"range", "ipRanges"},
			needs:  [][2]string{{"range_start", "range"}, {"range_end", "range"}, {"exclude", "range"}},
		},
	},
}
