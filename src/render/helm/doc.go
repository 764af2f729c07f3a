// Package helm renders Helm charts in memory, with Helm's own loader, values
// and template engine.
//
// The output is what Helm would install, as groups of objects and hooks: first
// the custom resource definitions of the crds folders, then everything else.
// The lookup function queries the region that the chart is rendered for.
// Templates cannot access the environment or DNS.
//
// A chart is an untrusted program. A meter bounds the time and memory of each
// rendering, and a gate bounds the number of renderings; a running function is
// not interrupted. Messages do not contain what templates have read by lookup.
//
// The package does not install anything, fetch charts, dependencies or parts of
// a schema, store releases, or write to disk.
package helm
