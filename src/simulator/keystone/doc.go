// Package keystone simulates Keystone, the identity service of OpenStack, for tests and for
// trials without OpenStack. A Simulator is an http.Handler with its users, projects, roles
// and tokens in memory.
//
// It serves the discovery of versions, and requests for tokens and their validation and
// revocation, as API v3 does: passwords, project-scoped and unscoped tokens, and a catalog of
// one service. It rejects what Keystone rejects, with the same status: 401 for wrong
// credentials and for a request whose own token is not valid, 403 for a user that may not
// validate the tokens of others, 404 for a token that does not exist, has expired or was
// revoked, and 400 for a request that is not of the schema. A journal has all requests, without
// passwords. A script makes requests fail, take time, or lose their response.
//
// The simulator has no other authentication methods, no trusts, no groups and no API for its
// users: a test gives them in the Config. It imports no package of the service.
package keystone
