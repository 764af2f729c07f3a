// Package ansible is the driver of sites that the playbooks of kud make cloud
// regions: it runs ansible-playbook and tells what happens, event by event.
//
// Ansible reads files, so every run has a folder of its own that nobody else may
// look into and that goes with the run. What is secret is not among the files: a
// private key stays in this process, which is the run's SSH agent; variables and
// passwords come through a pipe that is read once. The one exception is what the
// run leaves behind, the kubeconfig. No secret is an argument or in the
// environment of a process.
//
// The package promises that hosts prove themselves by the keys that are pinned,
// that what users give as parameters is never taken for a template, which Ansible
// would run on this machine, and that nothing of a run goes on when it has ended:
// not when it is cancelled, and not when this process dies.
//
// It does not know what the playbooks do.
package ansible
