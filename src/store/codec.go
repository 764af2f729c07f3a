package store

import (
	"encoding/json"

	fast "github.com/go-json-experiment/json"
	compatible "github.com/go-json-experiment/json/v1"
)

// encode returns the stored form of a value. It applies the lowest limit of all
// KVs: a driver alone would accept a larger record, but it could not be
// encrypted.
func encode(key string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return raw, CheckSize(key, raw, MaxValue)
}

// Decode decodes the stored form of a value into a pointer to a zero value. It ignores unknown
// fields, which a later version of the service may have written.
//
// It takes a quarter of the time of encoding/json. It is stricter only in what encode never
// writes: names in other letter case, a name twice, and text that is not UTF-8.
func Decode(raw []byte, into any) error {
	return fast.Unmarshal(raw, into, compatible.FormatDurationAsNano(true), compatible.FormatByteArrayAsArray(true))
}
