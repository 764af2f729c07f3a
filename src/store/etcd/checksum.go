package etcd

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
)

// The format of values in an embedded server, because bbolt stores no checksums. A
// value without the header was written in an outside cluster, or is damaged.
//
//	offset  bytes  what
//	0       4      "\xb5k8\x01"
//	4       4      CRC-32C of the key and the value, big-endian
//	8       rest   value
const (
	sumMagic  = "\xb5k8\x01"
	sumHeader = len(sumMagic) + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(parts ...string) uint32 {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, []byte(p))
	}
	return sum
}

// withSum returns a value with its header.
func withSum(key string, value []byte) string {
	var b strings.Builder
	b.Grow(sumHeader + len(value))
	b.WriteString(sumMagic)
	_ = binary.Write(&b, binary.BigEndian, crc32.Update(checksum(key), castagnoli, value)) // never fails
	b.Write(value)
	return b.String()
}

// withoutSum returns a stored value without its header. It returns a value without a
// valid header unchanged: the caller detects damage, because values are encrypted
// with authentication.
func withoutSum(key string, stored []byte) []byte {
	if checkSum(key, stored) != nil {
		return stored
	}
	return stored[sumHeader:]
}

var errSum = errors.New("its checksum is wrong")

// checkSum returns an error unless a stored value has a header, and the right one.
func checkSum(key string, stored []byte) error {
	if len(stored) < sumHeader || string(stored[:len(sumMagic)]) != sumMagic {
		return errSum
	}
	if sum := binary.BigEndian.Uint32(stored[len(sumMagic):]); sum != crc32.Update(checksum(key), castagnoli, stored[sumHeader:]) {
		return errSum
	}
	return nil
}
