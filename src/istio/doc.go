// Package istio obtains the service's certificate from Istio's certificate
// authority, istiod, and keeps it valid.
//
// An Identity enrols with the token of the process's service account: it makes a
// key, sends a CSR, and receives a chain with the SPIFFE id that istiod derives
// from the token. It renews the certificate at two thirds of its lifetime, and when
// the roots of the mesh change. Connections use the certificate and the roots at
// the time of their handshake. A peer is accepted if its certificate leads to a
// root, and has exactly one SPIFFE id, of our trust domain and in the list of
// allowed peers.
//
// Guarantees: the private key stays in the memory of the process, and each
// certificate has a key of its own. The token is read from its file for each request,
// and is in no error and no log. If istiod fails, the present certificate is used
// until it expires.
//
// It does not verify host names, does not log in to Kubernetes API servers (an
// Istio certificate has no common name), and does not fetch a token or the root of
// the mesh: Kubernetes puts both into files.
package istio
