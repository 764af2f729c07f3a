// Package openstack creates, reads and deletes virtual machines of an OpenStack cloud:
// single ones with Nova, and those of a VNF as a stack of Heat. It uses Keystone v3, Nova,
// Neutron, Glance and Heat through gophercloud.
//
// Guarantees: each call can be repeated, also after a crash in it, and leaves one
// server for each name. Servers carry their owner in their metadata, and ports in
// their descriptions; the package changes and deletes no others. A port is deleted
// with its server. A stack has a name of its own, and a tag with the attempt that has
// changed it last, so that an attempt changes it once. The service connects only to addresses that the operator allows,
// and sends a password without TLS only to a cloud whose certificate need not be
// verified. No error contains a secret.
//
// A call logs in, and logs in again if its token expires. It repeats no other
// request: its caller repeats the call.
//
// The package does not create images, flavors, networks, key pairs or security
// groups, and attaches no volumes and no floating IPs. It does not run user data scripts,
// and does not fetch files that a template refers to.
package openstack
