// Package openstack creates, reads and deletes virtual machines of an OpenStack cloud.
// It uses Keystone v3, Nova, Neutron and Glance through gophercloud.
//
// Guarantees: each call can be repeated, also after a crash in it, and leaves one
// server for each name. Servers carry their owner in their metadata, and ports in
// their descriptions; the package changes and deletes no others. A port is deleted
// with its server. The service connects only to addresses that the operator allows,
// and sends a password without TLS only to a cloud whose certificate need not be
// verified. No error contains a secret.
//
// A call logs in, and logs in again if its token expires. It repeats no other
// request: its caller repeats the call.
//
// The package does not create images, flavors, networks, key pairs or security
// groups, attaches no volumes and no floating IPs, and does not use Heat.
package openstack
