// Package script is the driver of sites that a user's script turns into cloud
// regions: it copies the script to the first control plane host, runs it there,
// and reads its output. For a site with EveryHost, it does the same on each host,
// one after another: first the control planes, then the workers.
//
// The script gets its options as arguments, and SITE_ACTION (build, shrink or
// reset), SITE_HOST and SITE_ROLE in its environment. On standard input it gets a JSON document with the
// site's hosts, parameters and secrets. Each line of its standard error becomes
// an event. A build script must write a JSON object to standard output at its
// end: {"server": …, "kubeconfig": …} or {"server": …, "token": …, "ca": …}, or a
// username and a password instead of the token. With EveryHost, only the output of the
// first host is read; what it has as "join" is in the document of the others.
//
// Guarantees: if a run ends early, its script is stopped, with the processes of
// its group. A run starts after the earlier one has ended. Neither holds while
// the host is unreachable. No argument or environment contains a secret. The
// package does not judge what a script does.
package script
