// Package openstack simulates an OpenStack cloud for tests: the part of Keystone v3,
// Nova 2.1, Neutron v2.0, Glance v2 and Heat v1 with which virtual machines are created,
// read and deleted, alone or as a stack. A Simulator is an http.Handler with its objects in memory.
//
// It rejects what the services reject: missing and expired tokens, unknown projects
// and passwords, unknown fields and queries, microversions that it does not have,
// references to objects that do not exist, templates with types, versions or parameters
// that it does not know, a second stack of a name, a change of a stack during another one,
// ports that another server has, and
// requests above a quota. Servers and their deletion take time. As in Nova, a port
// that a request named remains when its server is deleted.
//
// A journal has all requests. A script makes requests fail, take time, or lose their
// response, and makes servers fail.
//
// It has one project, a second region whose services are down, no volumes, no floating IPs
// and no quotas of cores. Of Heat it has servers, ports and groups of templates, and the
// functions get_param and get_resource. The texts of its errors are its own; clients read
// the status and the type.
package openstack
