// Package hook runs the scripts of VNF descriptors that are not Jobs in a cloud region: over
// SSH on hosts, and as requests to webhooks. The type of the script's artifact says which.
//
// Guarantees: no script runs in this process. A script that runs when its context ends is
// stopped, as far as its host can be reached. A webhook is reached by the rules for
// notifications, and gets the same id with each repetition. No error or log entry contains
// a credential.
//
// The package does not decide when a script runs, and keeps no records.
package hook
