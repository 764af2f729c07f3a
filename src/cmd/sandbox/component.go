package main

// component is a program of the control plane with its arguments.
type component struct {
	name    string // of the program
	args    []string
	healthy string // URL that returns 200 if the component is healthy
}

// waves returns the components in start order. Components of one wave start
// together.
func (p *plane) waves() [][]component {
	return [][]component{
		{p.etcd()},
		{p.apiServer()},
		{p.controllerManager(), p.scheduler(), p.kwok()},
	}
}

func (p *plane) etcd() component {
	client, peer := p.url("http", p.ports.etcd), p.url("http", p.ports.peer)
	return component{
		name:    "etcd",
		healthy: client + "/health",
		args: []string{
			"--name=sandbox", "--data-dir=" + p.file("etcd"),
			"--unsafe-no-fsync", // the data need not survive a crash of the machine
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=sandbox=" + peer,
			"--quota-backend-bytes=4294967296",
			"--auto-compaction-mode=periodic", "--auto-compaction-retention=5m",
		},
	}
}

func (p *plane) apiServer() component {
	keys := pkiIn(p.options.dir)
	return component{
		name:    "kube-apiserver",
		healthy: p.apiURL() + "/readyz",
		args: append([]string{
			"--etcd-servers=" + p.url("http", p.ports.etcd),
			"--bind-address=" + p.bindAddress(), "--advertise-address=" + p.address(), "--secure-port=" + p.ports.api,
			"--endpoint-reconciler-type=none", // the kubernetes Service must not point to loopback
			"--tls-cert-file=" + keys.serving, "--tls-private-key-file=" + keys.servingKey,
			"--client-ca-file=" + keys.caCert,
			"--kubelet-client-certificate=" + keys.client, "--kubelet-client-key=" + keys.clientKey, "--kubelet-preferred-address-types=InternalIP",
			"--token-auth-file=" + tokenPath(p.options.dir), "--authorization-mode=Node,RBAC",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + keys.accountPub, "--service-account-signing-key-file=" + keys.accountKey,
			"--service-cluster-ip-range=" + serviceRange, "--allow-privileged=true",
			"--audit-policy-file=" + p.file("audit.yaml"), "--audit-log-path=" + p.file("log/audit.log"),
			"--audit-log-maxsize=500", "--audit-log-maxbackup=1",
			// A sandbox has one user with many parallel requests.
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
		}, p.aggregation()...),
	}
}

// aggregation returns the arguments by which the API server reaches the APIs and the
// webhooks that pods serve. It calls the pods themselves: there is no kube-proxy.
func (p *plane) aggregation() []string {
	if p.options.hosts == 0 {
		return nil // simulated pods serve nothing
	}
	keys := pkiIn(p.options.dir)
	return []string{
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + keys.client, "--proxy-client-key-file=" + keys.clientKey,
		"--requestheader-client-ca-file=" + keys.caCert, "--requestheader-allowed-names=" + clientName,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

func (p *plane) controllerManager() component {
	keys := pkiIn(p.options.dir)
	return component{
		name:    "kube-controller-manager",
		healthy: p.url("https", p.ports.controller) + "/healthz",
		args: []string{
			"--kubeconfig=" + kubeconfigPath(p.options.dir, "controller-manager"),
			"--bind-address=" + loopback, "--secure-port=" + p.ports.controller,
			"--tls-cert-file=" + keys.serving, "--tls-private-key-file=" + keys.servingKey,
			"--leader-elect=false", "--use-service-account-credentials=true",
			"--service-account-private-key-file=" + keys.accountKey, "--root-ca-file=" + keys.caCert,
			"--cluster-signing-cert-file=" + keys.caCert, "--cluster-signing-key-file=" + keys.caKey,
			"--allocate-node-cidrs=true", "--cluster-cidr=10.128.0.0/9", "--node-cidr-mask-size=24",
			"--kube-api-qps=500", "--kube-api-burst=1000",
			"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		},
	}
}

func (p *plane) scheduler() component {
	keys := pkiIn(p.options.dir)
	return component{
		name:    "kube-scheduler",
		healthy: p.url("https", p.ports.scheduler) + "/healthz",
		args: []string{
			"--config=" + p.file("scheduler.yaml"),
			"--bind-address=" + loopback, "--secure-port=" + p.ports.scheduler,
			"--tls-cert-file=" + keys.serving, "--tls-private-key-file=" + keys.servingKey,
		},
	}
}

func (p *plane) kwok() component {
	address := p.url("http", p.ports.kwok)
	return component{
		name:    "kwok",
		healthy: address + "/healthz",
		args: []string{
			"--kubeconfig=" + kubeconfigPath(p.options.dir, "kwok"),
			"--config=" + p.file("kwok.yaml"),
			"--server-address=" + address[len("http://"):],
		},
	}
}

func schedulerConfig(kubeconfig string) any {
	return map[string]any{
		"apiVersion":       "kubescheduler.config.k8s.io/v1",
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig, "qps": 500, "burst": 1000},
		"leaderElection":   map[string]any{"leaderElect": false},
	}
}

// auditPolicy logs the user, verb and times of each request, but no content.
func auditPolicy() any {
	return map[string]any{
		"apiVersion": "audit.k8s.io/v1",
		"kind":       "Policy",
		"omitStages": []string{"RequestReceived"},
		"rules":      []any{map[string]any{"level": "Metadata"}},
	}
}
