package nf

import (
	"maps"
	"slices"
	"strings"
)

// ConnectionPoints returns the attachments that the network parameters ask for, in the
// form of the first version of the API, sorted by their names:
//
//	{"oam": {"connection_point": "oam", "ip_address": "10.1.0.9/24", "workload_name": "router"}}
//
// The connection point is the name or the id of a network. The other two fields can be
// missing. Parameters of any other form are variables and nothing else.
func (in Inputs) ConnectionPoints(region string) []Connection {
	var out []Connection
	for _, name := range slices.Sorted(maps.Keys(in.Network)) {
		value, _ := in.Network[name].(map[string]any)
		texts := map[string]string{}
		for key, v := range value {
			text, is := v.(string)
			if _, known := connectionPointFields[key]; !known || !is {
				texts = nil
				break
			}
			texts[key] = text
		}
		if texts["connection_point"] == "" {
			continue
		}
		a := Attachment{Network: texts["connection_point"], Workload: texts["workload_name"]}
		a.Network = strings.TrimPrefix(a.Network, SharedID(region, ""))
		if ip := texts["ip_address"]; ip != "" {
			a.IPs = []string{ip}
		}
		out = append(out, Connection{Attachment: a, At: Place{Field: "network_parameters." + name}, Names: connectionPointNames})
	}
	return out
}

var (
	connectionPointFields = map[string]bool{"connection_point": true, "ip_address": true, "workload_name": true}
	connectionPointNames  = map[string]string{"network": "connection_point", "ips": "ip_address", "ips[0]": "ip_address", "workload": "workload_name"}
)
