package seal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The stored form of a value, version 2:
//
//	offset    bytes  what
//	0         7      "\xb5k8seal", which no JSON begins with
//	7         1      the version of this form: 2
//	8         1      n, the length of the KEK's id: 1 to 255
//	9         n      the KEK's id, printable ASCII
//	9+n       4      w, the length of the wrapped data key, big-endian: 1 to 2048
//	13+n      w      the data key, wrapped by the KEK
//	13+n+w    12     nonce
//	25+n+w    rest   ciphertext and, in its last 16 bytes, the tag: AES-256-GCM
//
// The part from 9+n is the envelope of Tink's KMSEnvelopeAEAD. The part before
// it, followed by the record's key in the store, is the associated data of both
// the wrapped data key and the ciphertext.
//
// What is encrypted is a byte that says how it is compressed, and the content. In version
// 1, which release 0.1.0 writes, it is the value itself.
const (
	magic      = "\xb5k8seal"
	version    = 2
	plain      = 1              // the version whose values are not compressed
	idAt       = len(magic) + 2 // offset of the KEK's id
	maxID      = 255
	maxWrapped = 2048
	maxSeal    = idAt + maxID + 4 + maxWrapped + 12 + 1 + 16 // maximum overhead of encryption
)

const _ = uint(store.MaxStored - store.MaxValue - maxSeal) // the overhead fits into a driver's limit

var errPlain = errors.New("it is not encrypted: it was written by a release without encryption, or by hand")

// header returns the unencrypted header of values that the KEK with the id
// encrypts.
func header(id string) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return append(append([]byte(magic), version, byte(len(id))), id...), nil
}

// sealed reports whether the value begins with the magic of an encrypted one.
func sealed(value []byte) bool { return bytes.HasPrefix(value, []byte(magic)) }

// parse splits a stored value into its parts.
func parse(value []byte) (id string, head, envelope []byte, err error) {
	if !sealed(value) {
		return "", nil, nil, errPlain
	}
	if len(value) < idAt {
		return "", nil, nil, errors.New("it is truncated")
	}
	if v := value[len(magic)]; v != version && v != plain {
		return "", nil, nil, fmt.Errorf("it is encrypted in format version %d, but this release supports format versions %d and %d", v, plain, version)
	}
	end := idAt + int(value[idAt-1])
	if len(value) < end {
		return "", nil, nil, errors.New("it is truncated")
	}
	id = string(value[idAt:end])
	return id, value[:end], value[end:], checkID(id)
}

func checkID(id string) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("the id of its encryption key must have 1 to %[2]d bytes, and has %[1]d", len(id), maxID)
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return errors.New("the id of its encryption key is not printable ASCII")
		}
	}
	return nil
}
