package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

const (
	inventoryOwner  = "chaos" // of the regions in A&AI
	inventoryTenant = "t1"
	inventoryUser   = "servers"
	inventoryAgent  = "chaos" // X-FromAppId of this program
)

// inventory is a simulator of A&AI. The servers write to it, and this program reads it.
type inventory struct {
	address string
	sim     *aai.Simulator
}

func newInventory(address string) (*inventory, error) {
	sim, err := aai.New(aai.Config{Users: map[string]string{inventoryUser: inventoryUser}})
	return &inventory{address, sim}, err
}

// flags returns the flags of the servers.
func (i *inventory) flags(file func(name, content string) (string, error)) ([]string, error) {
	user, err := file("aai-user", inventoryUser)
	password, err2 := file("aai-password", inventoryUser)
	return []string{
		"--aai-url", "http://" + i.address, "--aai-user-file", user, "--aai-password-file", password,
		"--aai-write", "--aai-service-url", "http://k8splugin.example", "--aai-rate", "1000", "--aai-interval", "2s",
	}, errors.Join(err, err2)
}

// start serves the simulator until the context ends, with the regions.
func (i *inventory) start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", i.address)
	if err != nil {
		return fmt.Errorf("cannot serve A&AI: %w", err)
	}
	server := &http.Server{Handler: i.sim, ReadHeaderTimeout: patience, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)} // faults cut connections
	go func() { _ = server.Serve(listener) }()                                                                                             // it ends when the server is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	for _, region := range regions() {
		for _, object := range []struct{ path, body string }{{regionPath(region), `{"cloud-type":"k8s"}`}, {tenantPath(region), `{"tenant-name":"chaos"}`}} {
			if w := i.sim.Do(ctx, inventoryAgent, http.MethodPut, object.path, object.body); w.Code != http.StatusCreated {
				return fmt.Errorf("cannot put %s: status %d: %s", object.path, w.Code, w.Body)
			}
		}
	}
	return nil
}

func regionPath(region string) string {
	return "/cloud-infrastructure/cloud-regions/cloud-region/" + inventoryOwner + "/" + region
}

func tenantPath(region string) string {
	return regionPath(region) + "/tenants/tenant/" + inventoryTenant
}

// disturb lets requests of the servers fail, until the context ends: A&AI does not respond,
// responds late, or makes a change and does not say so.
func (i *inventory) disturb(ctx context.Context, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 7))
	for pause(ctx, time.Duration(random.IntN(4000))*time.Millisecond) == nil {
		i.sim.Script([]aai.Fault{
			{Method: http.MethodPost, Cut: true}, {Status: http.StatusServiceUnavailable, Times: 3}, {Delay: time.Second}, {Code: 6134, Times: 2},
		}[random.IntN(4)])
	}
	i.sim.Repair()
	return nil
}

// listed is a k8s-resource.
type listed struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Labels    []string `json:"labels"`
}

func (l listed) at() string { return strings.TrimSpace(l.Kind + " " + l.Namespace + "/" + l.Name) }

func (l listed) owner() string {
	for _, label := range l.Labels {
		if id, ok := strings.CutPrefix(label, ownerLabel+"="); ok {
			return id
		}
	}
	return ""
}

// resources returns the k8s-resources of all regions.
func (i *inventory) resources(ctx context.Context) (out []listed, err error) {
	for _, region := range regions() {
		var list struct {
			Resources []listed `json:"k8s-resource"`
		}
		if err := i.read(ctx, tenantPath(region)+"/k8s-resources", &list); err != nil {
			return nil, err
		}
		out = append(out, list.Resources...)
	}
	return out, nil
}

// networks returns the ids of the l3-networks.
func (i *inventory) networks(ctx context.Context) (out []string, err error) {
	var list struct {
		Networks []struct {
			ID string `json:"network-id"`
		} `json:"l3-network"`
	}
	err = i.read(ctx, "/network/l3-networks", &list)
	for _, n := range list.Networks {
		out = append(out, n.ID)
	}
	slices.Sort(out)
	return out, err
}

// read reads a collection. One that is empty does not exist.
func (i *inventory) read(ctx context.Context, collection string, into any) error {
	switch w := i.sim.Do(ctx, inventoryAgent, http.MethodGet, collection, ""); w.Code {
	case http.StatusNotFound:
		return nil
	case http.StatusOK:
		return json.Unmarshal(w.Body.Bytes(), into)
	default:
		return fmt.Errorf("cannot read %s of A&AI: status %d", path.Base(collection), w.Code)
	}
}

// inventoryIsEqual checks that A&AI has the objects of every instance that the cluster has,
// and no other object, and the networks that the service has.
func (q *checker) inventoryIsEqual() {
	there, known := map[string]string{}, map[string]bool{} // owners by object
	for _, o := range q.snapshot.objects {
		there[o.at()] = o.owner()
	}
	for _, l := range q.snapshot.listed {
		known[l.at()] = true
		if there[l.at()] != l.owner() {
			q.find("inventory", "", "A&AI has %s of instance %s, and the cluster does not", l.at(), l.owner())
		}
	}
	for _, in := range q.snapshot.instances {
		for _, o := range in.Objects {
			at := strings.TrimSpace(o.Kind + " " + o.Namespace + "/" + o.Name)
			if there[at] == in.ID && !known[at] {
				q.find("inventory", in.Operation, "A&AI does not have %s of instance %s", at, in.ID)
			}
		}
	}
	var networks []string
	for _, n := range q.snapshot.networks {
		networks = append(networks, n.id())
	}
	slices.Sort(networks)
	if !slices.Equal(networks, q.snapshot.listedNetworks) {
		q.find("inventory", "", "A&AI has the networks %s, and there are %s", q.snapshot.listedNetworks, networks)
	}
}
