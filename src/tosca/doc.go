// Package tosca reads descriptors of VNFs and network services: service templates of TOSCA in the form of ETSI
// SOL001.
//
// ReadVNFD returns the identity of the VNF. Read returns the topology of each deployment flavor: its VDUs, instantiation levels,
// scaling aspects, connection points, placement rules and lifecycle scripts. A Flavor
// answers how many pods a level or a step of scaling has. Translate writes a flavor whose
// VDUs are containers as manifests of Kubernetes.
//
// Node, policy and group types are recognized by the names of SOL001. A type that
// derives from one of them in the files of the descriptor is recognized, too. The type
// definitions of ETSI need not be in the CSAR. get_input stands for the value of the VNF
// node that a flavor substitutes, or for the default of the input.
//
// Translate has three forms of VDUs: deployable units of OS containers, compute nodes with
// the image of a container, and VDUs of Tacker with components. It rejects each part of
// the flavor that it would lose.
//
// ReadNSD reads a network service descriptor: its VNFs, their order and their virtual
// links. It rejects forwarding graphs, and each other part that would be lost.
//
// Guarantees: every error is nf.Invalid and names the file, and the line where there is
// one. The number of files, their size and their nodes are limited. The same files give
// the same result.
//
// The package does not open archives, does not follow URLs, and runs nothing. It does not
// check that a descriptor conforms to SOL001: it rejects only values that it uses.
package tosca
