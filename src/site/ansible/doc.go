// Package ansible is the driver of sites that the playbooks of kud turn into
// cloud regions: it runs ansible-playbook and reports its events.
//
// Ansible reads files, so every run has a private folder, which is removed with
// the run. It contains no secrets: a private key stays in this process, which
// is the run's SSH agent; variables and passwords come through a pipe that is
// read once. The only exception is the run's result, the kubeconfig. No secret
// is in the arguments or the environment of a process.
//
// Guarantees: hosts prove their pinned keys. User parameters are never taken
// for templates, which Ansible would run on this machine. No part of a run
// continues after its end, even if it is cancelled or this process crashes.
//
// The package does not know what the playbooks do.
package ansible
