// Package bundle keeps what ONAP calls resource bundles: definitions (a chart),
// profiles (values and files that are laid over the chart), configuration
// templates, and what is known of the connection to a region beside its
// kubeconfig.
//
// It promises that an archive is kept only when it is safe and means something,
// that what is replaced is let go of, and that a definition and a profile
// compose to one package, whose id says what is in it: the same chart under the
// same overlay is the same package.
//
// It does not render or apply anything, and does not know who asks or in which
// words.
package bundle
