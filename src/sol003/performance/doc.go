// Package performance measures VNFs, as PM jobs and thresholds of SOL003 ask for. It
// stores jobs, thresholds and reports, and writes a notice for each report and each
// crossing of a threshold.
//
// Guarantees: one replica measures. A region is asked for the usage of a VNF at most once
// in the collection period of each job. Measurements are stored, so a report is not lost or
// made twice when a process crashes or another replica takes over: the id of a report
// follows from its job and its period. A job keeps its last reports only. A job, its
// callback and its reports are deleted together; what a crash leaves is deleted later.
//
// The package does not read regions, test or store callbacks, deliver notices or authorize.
package performance
