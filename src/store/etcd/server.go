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
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// quota is the size of the database file above which writes are refused.
const quota = 2 << 30

// server is an etcd server inside this process, and the lock on its folder.
type server struct {
	etcd *embed.Etcd
	lock *fileutil.LockedFile
}

// start runs a server on the folder and waits until it takes requests.
func start(ctx context.Context, config Config, quota int64) (*server, error) {
	lock, err := lockDir(config.Dir)
	if err != nil {
		return nil, err
	}
	s := &server{lock: lock}
	// At every start etcd warns of the listeners and tokens that it lacks here.
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	s.etcd, err = embed.StartEtcd(serverConfig(config.Dir, quota, logger(config.Logger, level)))
	level.SetLevel(zap.WarnLevel)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start etcd on data folder %q: %w", config.Dir, err), lock.Close())
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return s, nil
	case err = <-s.etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, nf.E(nf.Unreachable, "start", "etcd on data folder "+strconv.Quote(config.Dir), errors.Join(err, s.close()))
}

func (s *server) close() error {
	s.etcd.Close()
	return s.lock.Close()
}

// serverConfig describes a cluster of one that listens nowhere.
func serverConfig(dir string, quota int64, log *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = "k8splugin"
	c.Dir = dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)

	// A member must have an address, though nobody calls it: an IP, so that
	// no name is looked up, and a port that nothing can listen on.
	c.ListenPeerUrls, c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil, nil
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	// A member that is alone elects itself after one to five ticks. The files
	// are brought up to date before that: a leader whose files say nothing yet
	// cannot note their version, and complains.
	c.TickMs, c.ElectionMs = 100, 500
	c.BackendBatchInterval = 50 * time.Millisecond

	c.QuotaBackendBytes = quota
	c.AutoCompactionMode = embed.CompactorModePeriodic
	c.AutoCompactionRetention = "5m"
	c.BootstrapDefragThresholdMegabytes = 64

	// The log holds whole chunks of blobs in memory, for followers that do not
	// exist, and all since the last snapshot when it is read again at start.
	c.SnapshotCount = 500
	c.SnapshotCatchUpEntries = 50
	return c
}

// lockDir makes the folder, for this user only, and takes the lock that keeps
// other processes out. The database itself would wait for them to go.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nf.E(nf.Invalid, "make", "data folder "+strconv.Quote(dir), err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, nf.E(nf.Invalid, "close to others", "data folder "+strconv.Quote(dir), err)
	}
	path := filepath.Join(dir, "LOCK")
	lock, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, nf.E(nf.Conflict, "use", "data folder "+strconv.Quote(dir), inUse(path))
	}
	if err != nil {
		return nil, nf.E(nf.Invalid, "lock", "data folder "+strconv.Quote(dir), err)
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		return nil, nf.E(nf.Invalid, "lock", "data folder "+strconv.Quote(dir), errors.Join(err, lock.Close()))
	}
	return lock, nil
}

// inUse says who holds the lock, if the file tells it yet.
func inUse(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return fmt.Errorf("it is in use by process %d", pid)
		}
	}
	return errors.New("it is in use by another process")
}
