// Package helm renders packages that are Helm charts: with Helm's own loader,
// values and template engine, in memory.
//
// What Helm would install comes out as groups of objects and hooks: the custom
// resource definitions of the crds folders first, then everything else. The
// lookup function is answered by the region that the chart is rendered for;
// environment and DNS are out of a template's reach.
//
// A chart is a program from a stranger. A meter bounds the time and the memory of
// each rendering, and a gate the number of renderings; a function that is running
// is not interrupted. Messages do not contain what templates have read by lookup.
//
// The package does not install anything, fetches no chart, no dependency and no
// part of a schema, keeps no release, and writes nothing to disk.
package helm
