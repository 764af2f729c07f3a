// Package seal keeps the values of a store secret: a Store is a store.KV that
// encrypts what is put and decrypts what is read, over any other.
//
// Every value, of records and chunks alike, is sealed by a data key of its own,
// which is wrapped by a key-encryption key (KEK). The KEKs come from Keys: a
// Keyring, a File that follows its changes, or somebody's key service. A value
// opens under the key of the store that it was put under, and under no other.
//
// The package promises that nothing is read which was not sealed, and that no
// error holds content. It does not hide keys, sizes or times, nor notice that a
// value was replaced by an older one of the same record. What is below "meta/"
// is not its: it can be read before any KEK is there, and is left alone.
package seal
