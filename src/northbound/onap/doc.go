// Package onap is the v1 API of ONAP's MultiCloud K8s plugin: resource bundle
// definitions, profiles, configuration templates, connectivity information,
// instances with their configuration, health checks and subscriptions, and the
// heat-like broker at the root.
//
// It owns ONAP's wire forms and oddities: errors are lines of text, what is
// missing is a 500 unless strictness is asked for, unknown fields are ignored,
// and no media type is looked at. It promises the shapes and the texts that the
// clients of ONAP look for, and nothing beside them where they are strict.
//
// It does not know how bundles are kept and composed, how instances are carried
// through their lives, or who may ask for what; and what ONAP promised but did
// not do is done behind the interfaces that it declares.
package onap
