// Package csar reads CSARs: packages of network functions in the form of ETSI SOL004,
// with a VNF descriptor in TOSCA (SOL001).
//
// Read finds the descriptor and the list of artifacts: by TOSCA-Metadata/TOSCA.meta, or
// by the only descriptor at the top. If there is a manifest, its list replaces the one
// of TOSCA.meta. Verify compares files with the hashes that the lists declare, and
// VerifySignature verifies the signatures (CMS) of the manifest and of single artifacts.
//
// Guarantees: every error names the file, and the line where there is one. A file is
// read only if it is a part of the structure, and is not larger than its limit. Names of
// files that the lists declare do not lead out of the CSAR.
//
// The package does not open archives, does not follow URLs, and does not run anything.
// Package tosca reads the descriptor. It does not know which artifacts a cluster can use,
// and which authorities are trusted.
package csar
