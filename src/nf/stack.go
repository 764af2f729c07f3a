package nf

// Stack is a stack of Heat: the virtual machines of a VNF on an OpenStack cloud.
type Stack struct {
	Name     string // unique in the project of the cloud
	Attempt  string // that changes the stack; it changes it once
	Template []byte // HOT
	Files    map[string][]byte
	Params   StackParams
	Replace  []string // ids of servers that the change replaces; those that do not exist are ignored
}

// StackParams are the values for the parameters of a stack.
type StackParams struct {
	VDUs   map[string]StackVDU
	Points map[string]StackPoint
	Images map[string]string // by the node template of a VDU or of its storage
	Given  map[string]any    // additionalParams
}

// StackVDU is a VDU whose components are servers.
type StackVDU struct {
	Flavor string // of Nova; empty: the descriptor names none
	Zone   string // availability zone; empty: any
	Count  int
}

// StackPoint is a connection point on a network of the cloud.
type StackPoint struct {
	Network string   `json:"network"` // name or id
	IPs     []string `json:"ips,omitempty"`
}

// VNFCPoint is a connection point of a component: a port of its server.
type VNFCPoint struct {
	Point string   `json:"point"` // id of the connection point in the VNFD
	Port  string   `json:"port"`  // id
	MAC   string   `json:"mac,omitempty"`
	IPs   []string `json:"ips,omitempty"`
}
