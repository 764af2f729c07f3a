package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// cluster is three nodes. Each is a process of its own, because an embedded
// server that stops hard while it handles a request may panic. They listen on
// ports of 127.0.0.1 and do not wait for the disk.
type cluster struct {
	configs [3]nodeConfig
	nodes   [3]*exec.Cmd // nil: it is down
	urls    []string     // for clients
}

// nodeConfig tells a process which node it is.
type nodeConfig struct {
	Name, Dir, Peer, Client string
	Members                 string
	ElectionTimeout         time.Duration // how long followers wait for a silent leader
}

func startCluster(t *testing.T, electionTimeout time.Duration) *cluster {
	t.Helper()
	c := &cluster{}
	dir, members := t.TempDir(), []string{}
	for i := range c.configs {
		name, peer, client := fmt.Sprint("node", i), freePort(t), freePort(t)
		members = append(members, name+"="+peer.String())
		c.urls = append(c.urls, client.String())
		c.configs[i] = nodeConfig{
			Name: name, Dir: filepath.Join(dir, name), Peer: peer.String(), Client: client.String(),
			ElectionTimeout: electionTimeout,
		}
	}
	for i := range c.configs {
		c.configs[i].Members = strings.Join(members, ",")
	}
	t.Cleanup(func() { c.stop(t, 0, 1, 2) })
	c.start(t, 0, 1, 2)
	return c
}

// start starts nodes, together, and waits until they take requests.
func (c *cluster) start(t *testing.T, which ...int) {
	t.Helper()
	var all errgroup.Group
	for _, i := range which {
		config, err := json.Marshal(c.configs[i])
		must(t, err)
		node := child(t, "node", c.configs[i].Dir, childNode+"="+string(config))
		node.Stderr = os.Stderr
		_, err = node.StdinPipe() // the node ends when this process does
		must(t, err)
		out, err := node.StdoutPipe()
		must(t, err)
		must(t, node.Start())
		c.nodes[i] = node
		all.Go(func() error {
			hangs := time.AfterFunc(hang, func() { _ = node.Process.Kill() })
			defer hangs.Stop()
			_, err := io.ReadFull(out, make([]byte, len(nodeReady)))
			if err != nil {
				return fmt.Errorf("%s is not ready: %w", c.configs[i].Name, err)
			}
			return nil
		})
	}
	must(t, all.Wait())
}

// stop kills nodes: a leader does not hand over.
func (c *cluster) stop(t *testing.T, which ...int) {
	t.Helper()
	for _, i := range which {
		if c.nodes[i] == nil {
			continue
		}
		_ = c.nodes[i].Process.Kill() // it may have ended with the test
		_ = c.nodes[i].Wait()         // it returns that it was killed
		c.nodes[i] = nil
	}
}

// leader returns which node leads, and one that follows. It waits during an election.
func (c *cluster) leader(t *testing.T, s *Store) (leader, follower int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < hang; {
		for i, url := range c.urls {
			if c.nodes[i] == nil {
				continue
			}
			status, err := s.client.Status(t.Context(), url)
			must(t, err)
			if status.Leader == status.Header.MemberId {
				return i, (i + 1) % len(c.nodes)
			}
		}
	}
	t.Fatal("nobody leads")
	return 0, 0
}

// nodeReady is what a node prints when it takes requests.
const nodeReady = "ready"

// playNode runs a node until the input ends.
func playNode(config nodeConfig) error {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = config.Name, config.Dir, config.Members
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	peer, err := url.Parse(config.Peer)
	if err != nil {
		return err
	}
	client, err := url.Parse(config.Client)
	if err != nil {
		return err
	}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = true
	c.ElectionMs = uint(config.ElectionTimeout.Milliseconds())
	node, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	select {
	case <-node.Server.ReadyNotify():
	case err := <-node.Err():
		return err
	}
	if _, err := os.Stdout.WriteString(nodeReady); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// given has the addresses that freePort has returned. A node listens only later.
var given sync.Map

// freePort returns a URL without a listener. Its port is below those that
// the system gives to connections: a node that is down is called all the time,
// and one of the calls would end on the port that it comes from.
func freePort(t *testing.T) url.URL {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if _, is := given.LoadOrStore(address, true); is {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return url.URL{Scheme: "http", Host: address}
		}
	}
	t.Fatal("every port is taken")
	return url.URL{}
}

// TestCluster holds three nodes to the whole contract, with one database that is
// emptied between the cases. No leader is elected in the meantime, however busy the
// machine is: that would be a failure, and a right one.
func TestCluster(t *testing.T) {
	c := startCluster(t, 5*time.Second)
	storetest.Run(t, func(t *testing.T) store.KV {
		s := open(t, Config{Endpoints: c.urls})
		if _, err := s.client.Delete(t.Context(), "", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// TestNodeLoss stops the leader, starts it again, and stops a follower,
// while writers append to one value: what was acknowledged is there once, and
// what is there was written.
func TestNodeLoss(t *testing.T) {
	t.Parallel()
	const writers, rounds = 4, 40
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := startCluster(t, time.Second)
	s := open(t, Config{Endpoints: c.urls})
	if _, err := s.Put(ctx, "log", nil, store.Absent); err != nil {
		t.Fatal(err)
	}
	told := make(chan string)
	enough, stop := context.WithCancel(ctx)
	unsure := make([][]string, writers)
	var all errgroup.Group
	for w := range writers {
		all.Go(func() error {
			for n := 0; enough.Err() == nil; n++ {
				line := fmt.Sprintf("%d-%d", w, n)
				err := appendLine(ctx, s, line)
				switch {
				case err == nil:
					select {
					case told <- line:
					case <-enough.Done():
						unsure[w] = append(unsure[w], line)
					}
				case nf.KindOf(err) == nf.Unreachable && ctx.Err() == nil:
					unsure[w] = append(unsure[w], line)
				default:
					return err
				}
			}
			return nil
		})
	}
	acknowledged := map[string]bool{}
	wait := func(what string) {
		for n := 0; n < rounds && !t.Failed(); {
			select {
			case line := <-told:
				acknowledged[line] = true
				n++
			case <-ctx.Done():
				t.Errorf("writes do not go on after %s", what)
			}
		}
		if err := storetest.UntilHealthy(ctx, s); err != nil {
			t.Errorf("the cluster is not healthy after %s: %v", what, err)
		}
	}
	wait("the start")
	leader, _ := c.leader(t, s)
	c.stop(t, leader)
	wait("the loss of the leader")
	c.start(t, leader)
	wait("its return")
	_, follower := c.leader(t, s)
	c.stop(t, follower)
	wait("the loss of a follower")
	stop()
	if err := all.Wait(); err != nil {
		t.Fatalf("a write fails with %v (%s), want none or unreachable", err, nf.KindOf(err))
	}

	e, err := s.Get(ctx, "log")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for line := range strings.Lines(string(e.Value)) {
		there[strings.TrimSpace(line)]++
	}
	t.Logf("%d lines are there, %d were acknowledged, %v are unsure", len(there), len(acknowledged), unsure)
	for line := range acknowledged {
		if there[line] != 1 {
			t.Errorf("line %s was acknowledged, and is there %d times", line, there[line])
		}
	}
	known := acknowledged
	for _, line := range slices.Concat(unsure...) {
		known[line] = true
	}
	for line, n := range there {
		if n > 1 || !known[line] {
			t.Errorf("line %s is there %d times, and was written: %t", line, n, known[line])
		}
	}
}

// appendLine adds a line by compare-and-swap. It writes again only after a
// conflict, which says that it has not been written.
func appendLine(ctx context.Context, kv store.KV, line string) error {
	for {
		e, err := kv.Get(ctx, "log")
		if err != nil {
			return err
		}
		_, err = kv.Put(ctx, "log", append(e.Value, line+"\n"...), e.Revision)
		if err == nil || nf.KindOf(err) != nf.Conflict {
			return err
		}
	}
}

// TestQuorumLoss stops two of three nodes: nothing works, nothing hangs,
// and everything is back with them.
func TestQuorumLoss(t *testing.T) {
	t.Parallel()
	c := startCluster(t, time.Second)
	s := open(t, Config{Endpoints: c.urls})
	rev, err := s.Put(t.Context(), "key", []byte("old"), store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	leader, follower := c.leader(t, s)
	c.stop(t, leader, follower)
	calls := map[string]func(context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := s.Get(ctx, "key"); return err },
		"Put":     func(ctx context.Context) error { _, err := s.Put(ctx, "key", []byte("new"), rev); return err },
		"Delete":  func(ctx context.Context) error { return s.Delete(ctx, "other", store.Any) },
		"Healthy": s.Healthy,
		"List": func(ctx context.Context) (last error) {
			for _, last = range s.List(ctx, "", "") {
			}
			return last
		},
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := call(ctx); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("%s without a majority: %v (%s), want unreachable", name, err, nf.KindOf(err))
		}
		cancel()
	}
	s.patience = time.Second
	for name, call := range calls {
		if err := call(t.Context()); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("%s without a majority and without haste: %v (%s), want unreachable", name, err, nf.KindOf(err))
		}
	}
	s.patience = answerTime

	c.start(t, leader, follower)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := storetest.UntilHealthy(ctx, s); err != nil {
		t.Fatalf("the nodes are back, and it is not healthy: %v", err)
	}
	e, err := s.Get(ctx, "key")
	if err != nil || string(e.Value) != "old" && string(e.Value) != "new" {
		t.Fatalf("the value is %q, error %v", e.Value, err)
	}
	if _, err := s.Put(ctx, "key", nil, e.Revision); err != nil {
		t.Errorf("the nodes are back, and do not take a write: %v", err)
	}
}
