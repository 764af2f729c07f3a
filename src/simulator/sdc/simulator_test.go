package sdc_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

// start starts a simulator, which reads status messages until the test ends.
func start(t *testing.T) *sdc.Simulator {
	t.Helper()
	s, err := sdc.New(sdc.Config{Users: map[string]string{"multicloud": "pw"}, KafkaUser: "kafka", KafkaPassword: "kpw"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s
}

func firewall() sdc.Service {
	chart := sdc.Artifact{Name: "helm_vf.tgz", Type: "HELM", UUID: "chart-1", Content: []byte("a chart")}
	return sdc.Service{Name: "Vfw", UUID: "service-1", Resources: []sdc.Resource{{
		Instance: "vf 0", Name: "vf", UUID: "resource-1", Artifacts: []sdc.Artifact{chart},
		Modules: []sdc.Module{{Name: "Vfw..helm_vf..module-0", InvariantUUID: "i", UUID: "u", CustomizationUUID: "c", Artifacts: []string{"chart-1"}}},
	}}}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.Put(firewall()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	const (
		instance = "X-ECOMP-InstanceID: multicloud-k8s"
		request  = "X-ECOMP-RequestID: 1"
		asJSON   = "Accept: application/json"
		asFile   = "Accept: application/octet-stream"
	)
	good := []string{instance, request, asJSON}
	cases := map[string]struct {
		reason, path, password string
		header                 []string
		status                 int
		want                   string // in the body
		violations             int
	}{
		"No instance id":    {"SDC wants to know who asks", "artifactTypes", "pw", []string{request, asJSON}, 400, "POL5001", 0},
		"No credentials":    {"credentials are required", "artifactTypes", "", good, 401, "POL5002", 0},
		"Wrong password":    {"a wrong password is forbidden, not unauthorized", "artifactTypes", "x", good, 403, "POL5003", 0},
		"No request id":     {"SDC ignores it, a test does not", "artifactTypes", "pw", []string{instance, asJSON}, 200, "HELM", 1},
		"Types":             {"there is a list of types", "artifactTypes", "pw", good, 200, "VF_MODULES_METADATA", 0},
		"Kafka":             {"the topics have the environment in their names", "distributionKafkaData", "pw", good, 200, "SDC-DISTR-NOTIF-TOPIC-AUTO", 0},
		"Services":          {"services are listed", "catalog/services?distributionStatus=DISTRIBUTED", "pw", good, 200, "service-1", 0},
		"None":              {"an empty list is not found", "catalog/services?version=9.0", "pw", good, 404, "SVC4642", 0},
		"Unknown parameter": {"SDC ignores it, a test does not", "catalog/services?limit=1", "pw", good, 200, "service-1", 1},
		"Resources":         {"resources are listed", "catalog/resources?resourceType=VF", "pw", good, 200, "resource-1", 0},
		"Metadata":          {"metadata has the artifacts of instances", "catalog/services/service-1/metadata", "pw", good, 200, "resourceInstances/vf0/artifacts/chart-1", 0},
		"Unknown service":   {"an unknown service is not found", "catalog/services/other/metadata", "pw", good, 404, "SVC4642", 0},
		"Resource metadata": {"a resource has metadata", "catalog/resources/resource-1/metadata", "pw", good, 200, "catalog/resources/resource-1/artifacts/chart-1", 0},
		"Artifact by name":  {"notifications have names in paths", "catalog/services/Vfw/1.0/resourceInstances/vf0/artifacts/helm_vf.tgz", "pw", []string{instance, request, asFile}, 200, "a chart", 0},
		"Artifact by id":    {"metadata has UUIDs in paths", "catalog/services/service-1/resourceInstances/vf0/artifacts/chart-1", "pw", []string{instance, request, asFile}, 200, "a chart", 0},
		"Modules":           {"the modules are an artifact", "catalog/services/Vfw/1.0/resourceInstances/vf0/artifacts/vf0_modules.json", "pw", []string{instance, request, asFile}, 200, "vfModuleModelCustomizationUUID", 0},
		"Wrong media type":  {"an artifact is not JSON", "catalog/services/service-1/resourceInstances/vf0/artifacts/chart-1", "pw", good, 406, "", 0},
		"CSAR":              {"a service has a CSAR", "catalog/services/service-1/toscaModel", "pw", []string{instance, request, asFile}, 200, "a CSAR", 0},
		"Unknown path":      {"there is nothing else", "registerForDistribution", "pw", good, 404, "SVC4000", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, body := ask(t, server.URL+"/sdc/v1/"+tc.path, tc.password, tc.header)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("%s: %d %s", tc.reason, status, body)
			}
			if got := s.Violations(); len(got) != tc.violations {
				t.Errorf("%s: violations %q", tc.reason, got)
			}
		})
	}
	if got := len(s.Journal()); got != len(cases) {
		t.Errorf("the journal has %d requests, want %d", got, len(cases))
	}
}

func ask(t *testing.T, url, password string, header []string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		key, value, _ := strings.Cut(line, ": ")
		req.Header.Set(key, value)
	}
	if password != "" {
		req.SetBasicAuth("multicloud", password)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// client connects to the simulator's Kafka.
func client(t *testing.T, s *sdc.Simulator, password string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(s.Brokers()...), kgo.RetryTimeout(5*time.Second),
		kgo.SASL(scram.Auth{User: "kafka", Pass: password}.AsSha512Mechanism()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const statusTopic = "SDC-DISTR-STATUS-TOPIC-AUTO"

func TestKafkaAccess(t *testing.T) {
	t.Parallel()
	s := start(t)
	cases := map[string]struct {
		reason, password, topic string
		refused                 bool
	}{
		"Status":         {"status messages are accepted", "kpw", statusTopic, false},
		"Wrong password": {"SCRAM proves the password", "x", statusTopic, true},
		"Other topic":    {"the ACL has a prefix", "kpw", "ANOTHER-TOPIC", true},
		"No such topic":  {"no topic is created", "kpw", "SDC-DISTR-NEW", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, s, tc.password, kgo.RecordRetries(2), kgo.UnknownTopicRetries(1))
			err := c.ProduceSync(t.Context(), &kgo.Record{Topic: tc.topic, Value: []byte("{}")}).FirstErr()
			if (err != nil) != tc.refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	const (
		chart   = "/sdc/v1/catalog/services/Vfw/1.0/resourceInstances/vf0/artifacts/helm_vf.tgz"
		modules = "/sdc/v1/catalog/services/Vfw/1.0/resourceInstances/vf0/artifacts/vf0_modules.json"
	)
	of := func(url string, statuses ...string) (out []sdc.Status) {
		for _, status := range statuses {
			m := sdc.Status{ArtifactURL: url, Status: status}
			if strings.HasSuffix(status, "_ERROR") {
				m.ErrorReason = "it is wrong"
			}
			out = append(out, m)
		}
		return out
	}
	done := sdc.Status{Status: "COMPONENT_DONE_OK", ComponentName: "multicloud"}
	unwanted := slices.Concat(of(chart, "NOT_NOTIFIED"), of(modules, "NOT_NOTIFIED"), []sdc.Status{done})
	restart := []sdc.Status{{Status: "restart"}} // the component is killed, and starts again
	cases := map[string]struct {
		reason   string
		messages []sdc.Status
		right    bool
	}{
		"Right": {"this is the order", slices.Concat(of(chart, "NOTIFIED"), of(modules, "NOTIFIED", "DOWNLOAD_OK"), of(chart, "DOWNLOAD_OK", "DEPLOY_OK"),
			of(modules, "DEPLOY_OK"), []sdc.Status{done}), true},
		"Nothing wanted":  {"a component may want nothing", slices.Concat(of(chart, "NOT_NOTIFIED"), of(modules, "NOT_NOTIFIED"), []sdc.Status{done}), true},
		"Failed":          {"an error has a reason", slices.Concat(of(chart, "NOTIFIED"), of(modules, "NOTIFIED", "DOWNLOAD_ERROR"), []sdc.Status{{Status: "COMPONENT_DONE_ERROR", ComponentName: "multicloud", ErrorReason: "x"}}), true},
		"Early download":  {"every artifact is notified first", slices.Concat(of(chart, "NOTIFIED", "DOWNLOAD_OK", "DEPLOY_OK"), of(modules, "NOTIFIED"), []sdc.Status{done}), false},
		"Not notified":    {"an artifact is missing", slices.Concat(of(chart, "NOTIFIED", "DOWNLOAD_OK"), []sdc.Status{done}), false},
		"No download":     {"what is deployed is downloaded before", slices.Concat(of(modules, "NOTIFIED"), of(chart, "NOTIFIED", "DEPLOY_OK"), []sdc.Status{done}), false},
		"Not deployed":    {"what is downloaded is deployed", slices.Concat(of(modules, "NOTIFIED"), of(chart, "NOTIFIED", "DOWNLOAD_OK"), []sdc.Status{done}), false},
		"Wrongly done":    {"an error is not OK", slices.Concat(of(modules, "NOTIFIED"), of(chart, "NOTIFIED", "DOWNLOAD_ERROR"), []sdc.Status{done}), false},
		"Unknown":         {"only artifacts have a status", slices.Concat(of("/other", "NOTIFIED"), of(modules, "NOTIFIED"), of(chart, "NOTIFIED"), []sdc.Status{done}), false},
		"SO's":            {"only SO ends a distribution", slices.Concat(of(modules, "NOTIFIED", "DISTRIBUTION_COMPLETE_OK"), of(chart, "NOTIFIED"), []sdc.Status{done}), false},
		"Done twice":      {"a component is done once", slices.Concat(of(modules, "NOT_NOTIFIED"), of(chart, "NOT_NOTIFIED"), []sdc.Status{done, done}), false},
		"Nameless":        {"a component has a name", slices.Concat(of(modules, "NOT_NOTIFIED"), of(chart, "NOT_NOTIFIED"), []sdc.Status{{Status: "COMPONENT_DONE_OK"}}), false},
		"Killed":          {"what is received again is reported again", slices.Concat(of(chart, "NOTIFIED"), restart, of(chart, "NOT_NOTIFIED"), of(modules, "NOT_NOTIFIED"), []sdc.Status{done}), true},
		"Killed late":     {"even if its end was reported", slices.Concat(unwanted, restart, unwanted), true},
		"Read late":       {"messages of a killed component are read after the next restart", slices.Concat(of(chart, "NOTIFIED"), restart, restart, of(chart, "NOTIFIED"), unwanted), true},
		"Again":           {"it is reported once without a restart", slices.Concat(of(chart, "NOTIFIED", "NOTIFIED"), of(modules, "NOTIFIED"), unwanted), false},
		"Again and again": {"it is reported once for each restart", slices.Concat(of(chart, "NOTIFIED"), restart, of(chart, "NOTIFIED", "NOTIFIED"), unwanted), false},
		"Reasonless":      {"an error has a reason", slices.Concat(of(modules, "NOT_NOTIFIED"), of(chart, "NOT_NOTIFIED"), []sdc.Status{{Status: "COMPONENT_DONE_ERROR", ComponentName: "m"}}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if _, err := s.Put(firewall()); err != nil {
				t.Fatal(err)
			}
			id, err := s.Distribute(t.Context(), "service-1")
			if err != nil {
				t.Fatal(err)
			}
			c := client(t, s, "kpw")
			for _, m := range tc.messages {
				if m.Status == "restart" {
					s.Restarted()
					continue
				}
				m.DistributionID, m.ConsumerID, m.Timestamp = id, "multicloud-k8s", 1
				say(t, c, m)
			}
			if _, err := s.Await(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			// A last message shows that all before it were read.
			marker, err := s.Distribute(t.Context(), "service-1")
			if err != nil {
				t.Fatal(err)
			}
			say(t, c, sdc.Status{DistributionID: marker, ConsumerID: "multicloud-k8s", Timestamp: 1, ArtifactURL: chart, Status: "NOT_NOTIFIED"})
			say(t, c, sdc.Status{DistributionID: marker, ConsumerID: "multicloud-k8s", Timestamp: 1, ArtifactURL: modules, Status: "NOT_NOTIFIED"})
			done := done
			done.DistributionID, done.ConsumerID, done.Timestamp = marker, "multicloud-k8s", 1
			say(t, c, done)
			if _, err := s.Await(t.Context(), marker); err != nil {
				t.Fatal(err)
			}
			if got := s.Violations(); (len(got) == 0) != tc.right {
				t.Errorf("%s: violations %q", tc.reason, got)
			}
		})
	}
}

func say(t *testing.T, c *kgo.Client, m sdc.Status) {
	t.Helper()
	value, err := json.Marshal(m)
	if err == nil {
		err = c.ProduceSync(t.Context(), &kgo.Record{Topic: statusTopic, Key: []byte("MyPartitionKey"), Value: value}).FirstErr()
	}
	if err != nil {
		t.Fatal(err)
	}
}
