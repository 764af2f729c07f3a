// Package istiod simulates the certificate authority of Istio's control plane,
// for tests. A Simulator serves the gRPC service
// istio.v1.auth.IstioCertificateService over TLS, with a root of its own.
//
// It rejects the requests that istiod rejects, with the same codes: no token, a
// token that the TokenReview does not accept or that is for another audience,
// an unknown cluster, a CSR whose signature or key is too weak, and a lifetime
// above the maximum. The names in a certificate are those of the token's service
// account, whatever the CSR says. A chain has the leaf first and the bundle of
// roots last.
//
// Roots rotate on demand. A script makes requests fail, or changes their
// response. A journal has all requests.
//
// It does not accept a certificate in place of a token, does not delegate to other
// signers, and does not serve xDS. It imports no package of ours, so that a
// mistake of the client is not repeated here.
package istiod
