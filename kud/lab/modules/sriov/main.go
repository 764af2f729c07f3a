// Command sriov replaces the SR-IOV network device plugin in the lab. The real one cannot be built from Go's module
// proxy and supports only PCI. The lab's kernel has netdevsim: emulated network cards that can be split, but without
// PCI addresses and without interfaces for their functions.
//
// It reads the same configuration, offers the functions of the emulated cards to the kubelet as the configured
// resource, and follows changes of their number. It shows that functions are configured, counted, allocated and
// released, but not that they can be used.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	configuration = "/etc/pcidp/config.json"
	cards         = "/sys/bus/netdevsim/devices"
	driver        = "netdevsim"
	interval      = 2 * time.Second // polling interval for the cards and the kubelet's socket
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "sriov:", err)
		os.Exit(1)
	}
}

// resource is an entry of the configuration's resourceList.
type resource struct {
	Name      string          `json:"resourceName"`
	Prefix    string          `json:"resourcePrefix"`
	Selectors json.RawMessage `json:"selectors"`
}

// wants reports whether the resource consists of the functions of a driver. Selectors are one object or a list.
func (r resource) wants(driver string) bool {
	type selector struct {
		Drivers []string `json:"drivers"`
	}
	var (
		one  selector
		many []selector
	)
	if json.Unmarshal(r.Selectors, &many) != nil {
		if json.Unmarshal(r.Selectors, &one) != nil {
			return false
		}
		many = []selector{one}
	}
	return slices.ContainsFunc(many, func(s selector) bool { return slices.Contains(s.Drivers, driver) })
}

func run(ctx context.Context) error {
	content, err := os.ReadFile(configuration)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	var config struct {
		Resources []resource `json:"resourceList"`
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("%s is not what the device plugin reads: %w", configuration, err)
	}
	i := slices.IndexFunc(config.Resources, func(r resource) bool { return r.wants(driver) })
	if i < 0 {
		fmt.Println("no resource is made of the functions of", driver)
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		if err := offer(ctx, config.Resources[i]); err != nil {
			return err
		}
	}
	return nil
}

// offer registers with the kubelet and serves it until the kubelet restarts, when it removes the socket.
func offer(ctx context.Context, r resource) error {
	socket := filepath.Join(api.DevicePluginPath, r.Prefix+"_"+r.Name+".sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("cannot make the socket: %w", err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin{variable: variable(r)})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer server.Stop()
	if err := register(ctx, r, filepath.Base(socket)); err != nil {
		return err
	}
	fmt.Printf("offering %s/%s\n", r.Prefix, r.Name)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			return err
		case <-tick.C:
			if _, err := os.Stat(socket); err != nil {
				return nil
			}
		}
	}
}

func register(ctx context.Context, r resource, endpoint string) error {
	conn, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: r.Prefix + "/" + r.Name,
	}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("the kubelet did not take the resource: %w", err)
	}
	return nil
}

// variable returns the name of the environment variable in which the real plugin lists a container's functions.
func variable(r resource) string {
	return "PCIDEVICE_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(strings.ToUpper(r.Prefix+"_"+r.Name))
}

type plugin struct {
	api.UnimplementedDevicePluginServer
	variable string
}

func (plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

func (plugin) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

// ListAndWatch sends the list of functions, and sends it again on each change.
func (plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	var (
		said []string
		tick = time.NewTicker(interval)
	)
	defer tick.Stop()
	for first := true; ; first = false {
		now, err := functions()
		if err != nil {
			return err
		}
		if first || !slices.Equal(said, now) {
			said = now
			answer := &api.ListAndWatchResponse{}
			for _, id := range now {
				answer.Devices = append(answer.Devices, &api.Device{ID: id, Health: api.Healthy})
			}
			if err := stream.Send(answer); err != nil {
				return err
			}
			fmt.Println("functions:", now)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// Allocate sets the variable with the container's functions.
func (p plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, one := range asked.ContainerRequests {
		fmt.Println("handed out:", one.DevicesIds)
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{p.variable: strings.Join(one.DevicesIds, ",")},
		})
	}
	return answer, nil
}

// functions returns the names of the functions of the emulated cards.
func functions() ([]string, error) {
	found, err := filepath.Glob(path.Join(cards, "*", "sriov_numvfs"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range found {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read how a card is split: %w", err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil {
			return nil, fmt.Errorf("%s holds no number: %w", name, err)
		}
		for i := range n {
			all = append(all, fmt.Sprintf("%s-vf%d", filepath.Base(filepath.Dir(name)), i))
		}
	}
	return all, nil
}
