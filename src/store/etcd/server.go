package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// startTime limits the start of etcd after the files are checked. It allows for
// reading a large database from a slow disk.
const startTime = 5 * time.Minute

// endTime limits the stop of a server whose start was aborted.
const endTime = 10 * time.Second

// server is an etcd server inside this process, and the lock on its folder.
type server struct {
	dir   string
	quota int64
	etcd  *embed.Etcd
	lock  *fileutil.LockedFile
	mark  *watermark

	mu     sync.Mutex
	closed bool           // no call may begin; guarded by mu
	calls  sync.WaitGroup // calls in progress, even if the caller has returned

	once   sync.Once
	failed chan struct{} // closed when etcd has failed
	err    error         // the reason; set before failed is closed
}

// start checks the folder, runs a server on it and waits until it accepts
// requests.
func start(ctx context.Context, config Config) (*server, error) {
	lock, err := lockDir(config.Dir)
	if err != nil {
		return nil, err
	}
	s := &server{dir: config.Dir, quota: config.Quota, lock: lock, failed: make(chan struct{})}
	m, err := layout{config.Dir}.inspect()
	if err == nil {
		s.mark, err = openWatermark(config.Dir, m)
	}
	if err != nil {
		return nil, errors.Join(unusable(config.Dir, err), lock.Close())
	}
	// At every start etcd warns that listeners and tokens are not configured.
	// Until it has applied the first log entry, it also retries to publish itself
	// in a busy loop and logs "too many requests" each time: it compares the
	// commit index with an applied index of 0. The loop ends by itself, within
	// milliseconds, so warnings are logged only once the server is ready.
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	log := logger(config.Logger, level, zap.WithFatalHook(s), zap.WithPanicHook(s))
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it is not ready after %s", startTime))
	defer cancel()
	if err := s.run(ctx, serverConfig(config, log)); err != nil {
		return nil, err
	}
	level.SetLevel(zap.WarnLevel)
	return s, nil
}

// run starts etcd and waits until it is ready. It does not close anything of a
// server that has failed: closing would wait for locks that are never released.
func (s *server) run(ctx context.Context, config *embed.Config) error {
	started := make(chan error, 1)
	go s.protect(func() {
		etcd, err := embed.StartEtcd(config)
		s.etcd = etcd
		started <- err
	})
	var err error
	select {
	case err = <-started:
	case <-s.failed:
		return s.err
	case <-ctx.Done():
		select {
		case err = <-started:
		case <-s.failed:
			return s.err
		case <-time.After(endTime):
			return s.late(ctx)
		}
	}
	if err != nil {
		return errors.Join(unusable(s.dir, err), s.mark.file.Close(), s.lock.Close())
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case <-s.failed:
		return s.err
	case err := <-s.etcd.Err():
		return errors.Join(unusable(s.dir, err), s.close(endTime))
	case <-ctx.Done():
		return errors.Join(s.late(ctx), s.close(endTime))
	}
}

// late returns the error of a start that has not ended in time.
func (s *server) late(ctx context.Context) error {
	return nf.E(nf.Unreachable, "start", "etcd on data folder "+strconv.Quote(s.dir), context.Cause(ctx))
}

// close stops the server and waits for it, for at most the given time. 0 means no
// limit.
func (s *server) close(limit time.Duration) error {
	select {
	case <-s.failed:
		return nil // the error was returned before; closing would never end
	default:
	}
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	ended := make(chan struct{})
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	go s.protect(func() {
		s.calls.Wait()
		s.etcd.Close()
		close(ended)
	})
	select {
	case <-ended:
	case <-s.failed:
		return s.err
	case <-late:
		return fmt.Errorf("etcd on data folder %q did not stop in time", s.dir)
	}
	sum, err := sumFile(layout{s.dir}.database())
	m := mark{index: max(s.mark.index, s.etcd.Server.AppliedIndex()), sum: sum}
	return errors.Join(err, s.mark.close(m), s.lock.Close())
}

// enter begins a call, which ends with calls.Done, unless the server is being
// closed: a closed server panics if it is read.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Add(1)
	}
	return !s.closed
}

// protect calls do, and turns a panic into a failure of the server.
func (s *server) protect(do func()) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(fmt.Errorf("etcd panicked: %v", p))
		}
	}()
	do()
}

// fail records that the server has failed. Only the first cause is kept.
func (s *server) fail(cause error) {
	s.once.Do(func() {
		s.err = unusable(s.dir, cause)
		close(s.failed)
	})
}

// OnWrite implements zapcore.CheckWriteHook. etcd's logger calls it instead of
// panicking or exiting, in any goroutine. It marks the server as failed and never
// returns, so the goroutine keeps its locks. If it released them, other goroutines
// would continue with inconsistent state and panic.
func (s *server) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	cause := errors.New(e.Message)
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			cause = fmt.Errorf("%s: %w", e.Message, err)
		}
	}
	s.fail(cause)
	select {}
}

var _ zapcore.CheckWriteHook = (*server)(nil)

// serverConfig returns the configuration of a one-member cluster without
// listeners.
func serverConfig(config Config, log *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = "k8splugin"
	c.Dir = config.Dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)

	// A member must have an address, although it is never called: an IP, so that
	// no name is looked up, and a port on which nothing can listen.
	c.ListenPeerUrls, c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil, nil
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	// A lone member elects itself after one to five ticks. The files are brought
	// up to date before that: a leader whose files are still empty cannot record
	// their version, and logs this as a problem.
	c.TickMs, c.ElectionMs = 100, 500
	c.BackendBatchInterval = 50 * time.Millisecond

	// The maintenance removes history, because it knows which history is being
	// read. The start also defragments files that the maintenance leaves alone.
	c.QuotaBackendBytes = config.Quota
	c.BootstrapDefragThresholdMegabytes = largeFile >> 20

	// These limit memory. etcd keeps log entries, with whole chunks of blobs, in
	// memory for followers, which do not exist here. At start it also reads all
	// entries since the last snapshot.
	c.SnapshotCount = 500
	c.SnapshotCatchUpEntries = 50

	// A start reads the whole log. etcd would keep up to five files of it. It removes
	// only those that are not needed after the last snapshot.
	c.MaxWalFiles = 1
	return c
}

// lockDir creates the folder, for this user only, and locks it against other
// processes. etcd itself would wait until they end.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	err := os.MkdirAll(dir, 0o700)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, nf.E(nf.Invalid, "make", "data folder "+strconv.Quote(dir), err)
	}
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, unusable(dir, err)
	}
	path := filepath.Join(dir, "LOCK")
	lock, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, nf.E(nf.Conflict, "use", "data folder "+strconv.Quote(dir), inUse(path))
	}
	if err != nil {
		return nil, unusable(dir, err)
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		return nil, unusable(dir, errors.Join(err, lock.Close()))
	}
	return lock, nil
}

// inUse returns an error with the process that holds the lock, if the file
// already names it.
func inUse(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return fmt.Errorf("it is in use by process %d", pid)
		}
	}
	return errors.New("it is in use by another process")
}
