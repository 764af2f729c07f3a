// Package openstack simulates an OpenStack cloud for tests: the part of Keystone v3,
// Nova 2.1, Neutron v2.0 and Glance v2 with which virtual machines are created, read
// and deleted. A Simulator is an http.Handler with its objects in memory.
//
// It rejects what the services reject: missing and expired tokens, unknown projects
// and passwords, unknown fields and queries, microversions that it does not have,
// references to objects that do not exist, ports that another server has, and
// requests above a quota. Servers and their deletion take time. As in Nova, a port
// that a request named remains when its server is deleted.
//
// A journal has all requests. A script makes requests fail, take time, or lose their
// response, and makes servers fail.
//
// It has one project, no volumes, no floating IPs and no quotas of cores. The
// texts of its errors are its own; clients read the status and the type.
package openstack
