// Package seal encrypts the values of a store: a Store is a store.KV that
// encrypts values on writes and decrypts them on reads, on top of any other.
//
// Every value, of records and chunks alike, is encrypted with its own data key.
// The data key is wrapped by a key encryption key (KEK). The KEKs come from
// Keys: a Keyring, a File that follows its changes, or an external key service.
// A value can be decrypted only under the key of the store under which it was
// put. The file of a Keyring is plaintext, or a KeyService protects it.
//
// Values are compressed first, with a dictionary of what records have in common. So the
// length of a stored value depends on its content, and not only on the length of that.
//
// Guarantees: a value that is not encrypted is rejected, and no error contains
// content. The package does not hide keys, sizes or times. It does not detect
// that a value was replaced by an older value of the same record. It does not
// touch keys below "meta/", which must be readable before any KEK is available.
package seal
