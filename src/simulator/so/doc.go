// Package so simulates SO, ONAP's orchestrator, for tests and for trials without ONAP.
// SO is a client: a Driver sends the requests of SO's flows to a service and to an A&AI,
// in SO's order and with its headers, and reads the responses as strictly as SO does.
//
//   - Heat is SO's core, which creates stacks through the broker's infra_workload.
//   - An Adapter is SO's CNF adapter, which uses /v1/instance and writes A&AI itself.
//   - Native creates VNF instances through /v1/vnf_instances.
//   - Networks creates virtual links, shares them, and deletes them.
//
// Before each flow, SO writes its own objects into A&AI: the service-instance, the
// generic-vnf and the vf-module. It deletes them at the end, with the resource versions
// that it has read, so that another writer at that time is a failure.
//
// A flow ends at the first response that SO would not accept. The error, a Difference,
// names the step, the request and the difference. A journal has all requests. A script
// runs code before or after requests, such as one that kills the service.
//
// The package is independent of the service's code, so that a mistake there is not
// repeated here. It does not start a service, plan, model services, or ask SDNC and OOF:
// their results are values of a flow.
package so
