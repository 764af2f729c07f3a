// Package subscriber simulates an NFVO that subscribes to the notifications of SOL003. It is
// for tests.
//
// A Simulator is a callback and a token endpoint of OAuth 2.0. It rejects what an NFVO
// that validates notifications rejects: a wrong version or media type, missing or unknown
// attributes, links that do not match the ids, missing credentials, and a state that
// cannot follow the last one of an occurrence. A notification that is repeated must be the
// same. What it rejects is also a violation, which fails a test. A journal has all requests.
// A script makes requests fail, take time or get no response.
//
// The simulator does not subscribe. It imports no package of the service, so that a
// mistake of the service is not repeated here.
package subscriber
