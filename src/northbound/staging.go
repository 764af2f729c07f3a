package northbound

import (
	"context"
	"io"
)

// Staging stores content of a request before all of the request is known, so that
// it is not held in memory. It returns nf.TooLarge if the content exceeds the limit
// of uploads, and an error of the reader unchanged.
type Staging func(ctx context.Context, content io.Reader) (Staged, error)

// Staged is stored content. It belongs to the request until the engine accepts it,
// and can be read while the request's context lasts.
type Staged interface {
	io.Reader
	io.ReaderAt
	// Size returns the number of bytes.
	Size() int64
	// Discard deletes the content, unless the engine has accepted it.
	Discard(ctx context.Context)
}
