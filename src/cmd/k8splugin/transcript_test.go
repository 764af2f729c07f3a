package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/metricsserver"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// TestTranscripts replays the transcripts of every API against the whole service
// and the sandbox; every answer is compared with swagger.yaml, too.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	kubeconfig := clustertest.Kubeconfig(t)
	access, err := cluster.Parse(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := json.Marshal(map[string]string{"server": access.Server, "ca": string(access.CA), "token": string(access.Token)})
	if err != nil {
		t.Fatal(err)
	}
	renewed := strings.Replace(string(direct), "{", `{"service_account": {"namespace": "default", "name": "default"}, `, 1)
	clustertest.Networks(t)
	for _, file := range transcripts(t) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s := startBareService(t, func(c *Config) { c.CallbackAllow, c.VNFNotify.Test = "127.0.0.1", true })
			host := sitetest.New(t)
			callback := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
			t.Cleanup(callback.Close)
			_, cloud := newCloud(t, "vim-openstack")
			northboundtest.Player{
				Client: northboundtest.Client(t, k8splugin.Swagger), Server: s.url,
				Vars: map[string]string{
					"SERVER": access.Server, "TOKEN": string(access.Token), "CA_LINE": strings.TrimSpace(strings.ReplaceAll(string(access.CA), "\n", " ")),
					"ACCESS": string(direct), "ACCESS_RENEWED": renewed, "KUBECONFIG": string(kubeconfig), "KUBECONFIG_BASE64": base64.StdEncoding.EncodeToString(kubeconfig),
					"NAMESPACE":           clustertest.Namespace(t),
					"CALLBACK":            callback.URL,
					"KEYSTONE":            fmt.Sprint(cloud["auth_url"]),
					"KUBECONFIG_MEASURED": base64.StdEncoding.EncodeToString(measuredRegion(t, metricsserver.New())),
					"SITE_ADDRESS":        host.Site().Address, "SITE_PORT": strconv.Itoa(host.Site().Port), "SITE_USER": sitetest.User,
					"SITE_HOST_KEY": host.Key(), "SITE_PASSWORD": sitetest.Password, "SITE_SCRIPT": siteScript(t, kubeconfig),
				},
			}.Play(t, file)
		})
	}
}

// siteScript is a script that says how the sandbox is reached, as a JSON text
// without its quotes.
func siteScript(t *testing.T, kubeconfig []byte) string {
	t.Helper()
	said, err := json.Marshal(map[string]string{"kubeconfig": string(kubeconfig)})
	if err != nil {
		t.Fatal(err)
	}
	script, err := json.Marshal("#!/bin/sh\necho building with pods $(sed 's/.*\"pods\":\\([0-9]*\\).*/\\1/') >&2\necho " + base64.StdEncoding.EncodeToString(said) + " | base64 -d\n")
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.Trim(script, `"`))
}

func transcripts(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, api := range []string{"native", "onap", "tacker", "etsi", "sol003"} {
		files, err := filepath.Glob("../../../api/" + api + "/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts of the %s API: %v", api, err)
		}
		all = append(all, files...)
	}
	return all
}
