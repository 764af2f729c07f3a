// Package script is the driver of sites that a script of the user's makes cloud
// regions: it copies the script to the first host of the control plane, runs it
// there, and reads what it says.
//
// The script gets its options as arguments, SITE_ACTION (build, shrink or reset)
// in its environment, and on its standard input a JSON document with the site's
// hosts, parameters and secrets. What it writes to standard error is told line by
// line. A script that builds ends by writing a JSON object to standard output:
// {"server": …, "kubeconfig": …} or {"server": …, "token": …, "ca": …}.
//
// The package promises that a script which is no longer wanted is stopped, with
// what it has started in its process group, and that a former run on the host has
// ended before another begins; neither can be done while the host does not
// answer. No secret is an argument or in the environment of a process.
//
// It does not judge what a script does.
package script
