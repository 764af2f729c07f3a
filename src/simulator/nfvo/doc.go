// Package nfvo simulates the Grants interface of an NFVO (ETSI GS NFV-SOL 003 V3.3.1,
// clause 9), and the token endpoint of its OAuth2 server. It is for tests.
//
// It refuses what an NFVO refuses: a wrong version, media type or path, credentials other
// than the configured ones, a token that it has not issued or that has expired, a request
// without a mandatory attribute or with an unknown one, definitions with the same id, and
// resources that do not fit the operation. It grants everything else. A script makes it
// decide later, refuse, place resources in zones and VIMs, or fail. A journal has all
// requests.
//
// The simulator imports no package of the service, so that a mistake of its client is not
// repeated here. It has no life cycle of network services.
package nfvo
