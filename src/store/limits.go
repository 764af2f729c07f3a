package store

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const maxKey = 512

// CheckKey returns nf.Invalid unless every KV accepts the key. It is for
// drivers, whose methods all begin with it.
func CheckKey(key string) error {
	if key == "" {
		return nf.E(nf.Invalid, "use", "an empty key", nil)
	}
	return CheckPrefix(key)
}

// CheckPrefix is CheckKey for the beginning of a key, which may be empty.
func CheckPrefix(prefix string) error {
	subject := "key " + strconv.Quote(prefix)
	if len(prefix) > maxKey {
		return nf.E(nf.Invalid, "use", subject, fmt.Errorf("it has %d bytes, and %d is the limit", len(prefix), maxKey))
	}
	for i := range len(prefix) {
		if prefix[i] < ' ' || prefix[i] > '~' {
			return nf.E(nf.Invalid, "use", subject, errors.New("it is not printable ASCII"))
		}
	}
	return nil
}

// CheckValue returns nf.TooLarge unless every driver accepts the value. It is
// for drivers.
func CheckValue(key string, value []byte) error {
	return CheckSize(key, value, MaxStored)
}

// CheckSize returns nf.TooLarge when the value has more bytes than the limit. It
// is for those who let through less than a driver does.
func CheckSize(key string, value []byte, limit int) error {
	if len(value) > limit {
		return nf.E(nf.TooLarge, "write", "key "+strconv.Quote(key),
			fmt.Errorf("the value has %d bytes, and %d is the limit", len(value), limit))
	}
	return nil
}
