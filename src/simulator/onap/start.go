package onap

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

// The credentials of the simulators, which listen on loopback only.
const (
	serviceUser   = "k8splugin"
	placementUser = "oof"
	orchestrator  = "so"
	kafkaUser     = "multicloud-k8s-ku"
	headerTimeout = 10 * time.Second
)

// secret returns the password of a user.
func secret(user string) string { return user + "-only-for-trials" }

// Place is a cloud region of A&AI, and a tenant in it.
type Place struct{ Owner, Region, Tenant string }

// Surroundings are ONAP's components around a service.
type Surroundings struct {
	AAI   *aai.Simulator
	SDC   *sdc.Simulator
	Place Place

	files    map[string]string // paths by name
	aai, sdc *listener
	run      sync.WaitGroup
	stop     context.CancelFunc

	mu      sync.Mutex
	service string       // URL, set when it is known
	client  *http.Client // of the service
}

// Start starts the simulators. It stores the region with its kubeconfig in A&AI, and files
// with credentials in a folder. The caller must close the surroundings.
func Start(ctx context.Context, dir string, place Place, kubeconfig []byte) (*Surroundings, error) {
	s := &Surroundings{Place: place, files: map[string]string{}}
	for name, content := range map[string]string{
		"aai-user": serviceUser, "aai-password": secret(serviceUser), "sdc-user": "multicloud", "sdc-password": secret("sdc"),
		"kafka-jaas": fmt.Sprintf(`org.apache.kafka.common.security.scram.ScramLoginModule required username=%q password=%q;`, kafkaUser, secret("kafka")),
	} {
		s.files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(s.files[name], []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("cannot store the credentials of the simulators: %w", err)
		}
	}
	var err error
	if s.AAI, err = aai.New(aai.Config{Users: map[string]string{serviceUser: secret(serviceUser), orchestrator: secret(orchestrator), placementUser: secret(placementUser)}}); err != nil {
		return nil, fmt.Errorf("cannot start the simulators: %w", err)
	}
	s.SDC, err = sdc.New(sdc.Config{Users: map[string]string{"multicloud": secret("sdc")}, KafkaUser: kafkaUser, KafkaPassword: secret("kafka"), Deployed: s.deployed})
	if err != nil {
		return nil, fmt.Errorf("cannot start the simulators: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	s.stop = stop
	s.run.Go(func() { _ = s.SDC.Run(running) })
	if s.aai, err = listen(ctx, s.AAI); err == nil {
		s.sdc, err = listen(ctx, s.SDC)
	}
	if err == nil {
		err = s.store(ctx, kubeconfig)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the simulators.
func (s *Surroundings) Close() {
	s.stop()
	s.run.Wait()
	s.aai.close()
	s.sdc.close()
	s.SDC.Close()
}

// Violations returns the mistakes of the service that A&AI and SDC ignore.
func (s *Surroundings) Violations() []string {
	return append(s.AAI.Violations(), s.SDC.Violations()...)
}

// URLs returns the URLs of the simulators by their names.
func (s *Surroundings) URLs() map[string]string {
	return map[string]string{"A&AI": s.aai.url, "SDC": s.sdc.url, "Kafka": strings.Join(s.SDC.Brokers(), ",")}
}

// Arguments returns the arguments of `k8splugin serve` with which it uses the simulators.
func (s *Surroundings) Arguments() []string {
	return []string{
		"--aai-url", s.aai.url, "--aai-user-file", s.files["aai-user"], "--aai-password-file", s.files["aai-password"],
		"--aai-write", "--aai-objects", "k8s-resource,vserver,network,flavor", "--aai-service-url", "http://k8splugin.example", "--aai-interval", "1s", "--aai-rate", "1000",
		"--sdc-url", s.sdc.url, "--sdc-mode", "distribution", "--sdc-user-file", s.files["sdc-user"], "--sdc-password-file", s.files["sdc-password"],
		"--kafka-jaas-file", s.files["kafka-jaas"], "--allowed-callbacks", "127.0.0.1",
	}
}

// listener serves a simulator on loopback.
type listener struct {
	url    string
	server *http.Server
	served sync.WaitGroup
}

func listen(ctx context.Context, handler http.Handler) (*listener, error) {
	on, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	l := &listener{url: "http://" + on.Addr().String(), server: &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}}
	l.served.Go(func() { _ = l.server.Serve(on) })
	return l, nil
}

func (l *listener) close() {
	if l != nil {
		_ = l.server.Close()
		l.served.Wait()
	}
}

// store writes the region and the tenant into A&AI, as an operator does.
func (s *Surroundings) store(ctx context.Context, kubeconfig []byte) error {
	region := "/cloud-infrastructure/cloud-regions/cloud-region/" + s.Place.Owner + "/" + s.Place.Region
	complexAt := "/cloud-infrastructure/complexes/complex/" + s.Place.Region
	for _, one := range []struct {
		path string
		body map[string]any
	}{
		{complexAt, map[string]any{
			"physical-location-type": "office", "street1": "1 Main Street", "city": "Springfield", "postal-code": "00000", "country": "US", "region": "US",
			"complex-name": s.Place.Region, "latitude": "39.8", "longitude": "-89.6",
		}},
		{region, map[string]any{
			"cloud-type": "k8s", "cloud-region-version": "1.0", "complex-name": s.Place.Region,
			"relationship-list": map[string]any{"relationship": []any{map[string]any{"related-link": "/aai/v30" + complexAt}}},
		}},
		{region + "/tenants/tenant/" + s.Place.Tenant, map[string]any{"tenant-name": s.Place.Tenant}},
		{region + "/esr-system-info-list/esr-system-info/cluster", map[string]any{
			"user-name": "kubeconfig", "password": base64.StdEncoding.EncodeToString(kubeconfig), "system-type": "VIM",
		}},
	} {
		if err := s.put(ctx, one.path, one.body); err != nil {
			return err
		}
	}
	return nil
}

func (s *Surroundings) put(ctx context.Context, path string, body map[string]any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if w := s.AAI.Do(ctx, "operator", http.MethodPut, path, string(content)); w.Code != http.StatusCreated {
		return fmt.Errorf("cannot write %s: status %d", path, w.Code)
	}
	return nil
}

// deployed checks that the service has the definition of a module that it reports as
// deployed.
func (s *Surroundings) deployed(ctx context.Context, _ string) error {
	s.mu.Lock()
	service, client := s.service, s.client
	s.mu.Unlock()
	if service == "" {
		return errors.New("the service is not known yet")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, service+definition, nil)
	if err != nil {
		return fmt.Errorf("cannot read the definition: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot read the definition: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot read the definition: status %d", resp.StatusCode)
	}
	return nil
}
