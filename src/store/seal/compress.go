package seal

import (
	_ "embed"
	"errors"

	"github.com/klauspost/compress/zstd"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The first byte of what is encrypted in the form of version 2.
const (
	asIs   = 0 // the value follows
	zipped = 1 // a frame of Zstandard follows (RFC 8878), with the dictionary
)

// dictionary has what records have in common. It never changes, because frames refer to
// its content: a better one gets another number.
//
//go:embed dictionary.txt
var dictionary []byte

const dictionaryID = 1

var errFrame = errors.New("its compressed content is invalid")

// compressor compresses values before they are encrypted. It is safe for concurrent use.
type compressor struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCompressor() compressor {
	// Both fail only for options that contradict each other. The encryption detects damage.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithEncoderDictRaw(dictionaryID, dictionary))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(store.MaxValue),
		zstd.WithDecoderDictRaw(dictionaryID, dictionary))
	return compressor{encoder, decoder}
}

// pack returns the content to encrypt. It is at most a byte longer than the value.
func (c compressor) pack(value []byte) []byte {
	if packed := c.encoder.EncodeAll(value, []byte{zipped}); len(packed) <= len(value) {
		return packed
	}
	return append([]byte{asIs}, value...)
}

// unpack returns the value.
func (c compressor) unpack(content []byte) ([]byte, error) {
	switch {
	case len(content) == 0:
		return nil, errFrame
	case content[0] == asIs:
		return content[1:], nil
	case content[0] != zipped:
		return nil, errFrame
	}
	value, err := c.decoder.DecodeAll(content[1:], nil)
	if err != nil {
		return nil, errFrame
	}
	return value, nil
}
