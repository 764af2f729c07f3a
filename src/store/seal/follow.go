package seal

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	// freshFor is the minimum time between two checks of the file for changes.
	freshFor = time.Second

	// restFor is the minimum time between two attempts to have the service decrypt
	// the same content.
	restFor = 30 * time.Second

	// askFor is how long the service may take for new content. The caller may renew a
	// lease, which does not wait longer than a few seconds.
	askFor = 2 * time.Second
)

// File is the current keyring in a file. Primary checks the file for a change,
// at most once a second, and Find if it does not know an id. If the file
// becomes unusable, File keeps the KEKs that were read last, and Healthy
// returns the error.
//
// File calls the service only for new content of the file. So a service that does
// not respond has no effect until the file changes.
type File struct {
	path    string
	service KeyService // nil: the file is plaintext
	clock   func() time.Time

	mu        sync.Mutex // not held while the file is read
	ring      *Keyring
	stat      fs.FileInfo // of the file that ring was read from
	checked   time.Time   // when the file was last checked
	checking  bool        // the service may take seconds: the other callers go on with ring
	readError error       // why it could not be used then
	failed    attempt     // the last one that the service failed
}

// attempt is content that the service did not decrypt.
type attempt struct {
	content nf.Secret
	err     error
	until   time.Time // when it may be tried again
}

var _ Keys = (*File)(nil)

// Follow returns the keyring in a file, with the parameters and the errors of Load. A
// nil clock means time.Now.
func Follow(ctx context.Context, path string, service KeyService, clock func() time.Time) (*File, error) {
	if clock == nil {
		clock = time.Now
	}
	ring, stat, err := load(ctx, path, service)
	if err != nil {
		return nil, err
	}
	return &File{path: path, service: service, clock: clock, ring: ring, stat: stat, checked: clock()}, nil
}

// Primary implements Keys.
func (f *File) Primary(ctx context.Context) (KEK, error) {
	ring, _ := f.fresh(ctx)
	return ring.Primary(ctx)
}

// Find implements Keys.
func (f *File) Find(ctx context.Context, id string) (KEK, error) {
	found, err := f.present().Find(ctx, id)
	if nf.KindOf(err) != nf.NotFound {
		return found, err
	}
	f.reload(ctx)
	found, err = f.present().Find(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return nil, nf.E(nf.NotFound, "find", "encryption key "+strconv.Quote(id), f.why())
	}
	return found, err
}

// Healthy returns nf.Unreachable if the file cannot be used: with the reason
// ReasonKMS if it has changed and the service does not respond, otherwise with
// ReasonKey. The process continues with the KEKs that it has read before, but a
// restarted one could not. Healthy does not report a service that is not needed.
func (f *File) Healthy(ctx context.Context) error {
	_, trouble := f.fresh(ctx)
	if trouble == nil {
		return nil
	}
	reason := nf.ReasonKey
	if nf.KindOf(trouble) == nf.Unreachable {
		reason = nf.ReasonKMS
	}
	return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "the encryption keys", Reason: reason, Err: trouble}
}

// fresh checks the file for a change, if a check is due, and returns the
// keyring.
func (f *File) fresh(ctx context.Context) (*Keyring, error) {
	if f.due() {
		f.check(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring, f.readError
}

// due reports whether a check is due, to one caller at a time.
func (f *File) due() bool {
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.checking || now.Sub(f.checked) < freshFor {
		return false
	}
	f.checked, f.checking = now, true
	return true
}

func (f *File) check(ctx context.Context) {
	stat, err := os.Stat(f.path)
	if err != nil || !f.same(stat) {
		f.reload(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checking = false
}

// same reports whether the file is unchanged since it was read.
func (f *File) same(stat fs.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readError == nil && os.SameFile(stat, f.stat) && stat.Mode() == f.stat.Mode() &&
		stat.Size() == f.stat.Size() && stat.ModTime().Equal(f.stat.ModTime())
}

func (f *File) reload(ctx context.Context) {
	content, stat, err := read(f.path)
	var ring *Keyring
	if err == nil {
		ring, err = f.parseFile(ctx, content)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readError = err; err == nil {
		f.ring, f.stat = ring, stat
	}
}

// parseFile returns the keyring in the content of the file. It does not parse the
// content of the present keyring, or what has just failed, again.
func (f *File) parseFile(ctx context.Context, content nf.Secret) (*Keyring, error) {
	f.mu.Lock()
	present, failed := f.ring, f.failed
	f.mu.Unlock()
	if bytes.Equal(content, present.origin.content) {
		return present, nil
	}
	if bytes.Equal(content, failed.content) && f.clock().Before(failed.until) {
		return nil, failed.err
	}
	// The keyring is for all callers: it must not be missing because one of them leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
	defer cancel()
	ring, err := parseFile(ctx, content, f.service)
	if err == nil {
		return ring, nil
	}
	err = failRead(keyFile(f.path), err)
	if f.service != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = attempt{content, err, f.clock().Add(restFor)}
	}
	return nil, err
}

func (f *File) present() *Keyring {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring
}

func (f *File) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readError
}
