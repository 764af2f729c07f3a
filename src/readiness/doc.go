// Package readiness judges custom resources by rules that are data.
//
// A rule says for some kinds when an object is ready and when it has failed, in
// the Common Expression Language (CEL). Rules come from three places, in this
// order: the operator's file, the package that an object is of, and shipped.yaml,
// which has the rules for widely used operators. The first rule that is for the
// object's kind decides.
//
// Guarantees: a rule reads the object that it is given, and nothing else. The
// evaluation of each rule is limited in time and memory, whichever place it comes
// from. An expression that fails to evaluate never makes an object ready.
//
// The package does not judge the kinds of Kubernetes itself, does not look at
// deletion, and does not wait: a Verdict names the time that must pass, and the
// caller measures it.
package readiness
