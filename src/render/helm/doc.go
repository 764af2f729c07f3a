// Package helm renders packages that are Helm charts: with Helm's own loader,
// values and template engine, in memory.
//
// What Helm would install comes out as groups of objects and hooks: the custom
// resource definitions of the crds folders first, then everything else. The
// lookup function is answered by the region that the chart is rendered for;
// environment and DNS are out of a template's reach.
//
// A chart is a program from a stranger. What it may take is bounded as far as
// that can be done from inside: see meter for what is counted, and when. What
// remains is the time of one call of one function, such as genCA.
//
// The package does not install anything, fetches no chart, no dependency and no
// part of a schema, keeps no release, and writes nothing to disk.
package helm
