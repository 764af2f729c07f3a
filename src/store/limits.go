package store

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const maxKey = 512

// CheckKey returns nf.Invalid unless every KV accepts the key. Every method of
// a driver calls it first.
func CheckKey(key string) error {
	if key == "" {
		return nf.E(nf.Invalid, "use", "an empty key", nil)
	}
	return checkText(key)
}

// FirstKey returns the least key that KV.List(prefix, start) may yield, or
// nf.Invalid unless every KV accepts both. Every driver's List calls it first.
// The result is empty if both are.
func FirstKey(prefix, start string) (string, error) {
	if err := checkText(prefix); err != nil {
		return "", err
	}
	return max(prefix, start), checkText(start)
}

func checkText(key string) error {
	subject := "key " + strconv.Quote(key)
	if len(key) > maxKey {
		return nf.E(nf.Invalid, "use", subject, fmt.Errorf("it has %d bytes; the limit is %d", len(key), maxKey))
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
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

// CheckSize returns nf.TooLarge if the value has more bytes than the limit. It
// is for a KV with a lower limit than a driver.
func CheckSize(key string, value []byte, limit int) error {
	if len(value) > limit {
		return nf.E(nf.TooLarge, "write", "key "+strconv.Quote(key),
			fmt.Errorf("the value has %d bytes; the limit is %d", len(value), limit))
	}
	return nil
}
