# Every habit of this repository. `make` alone lists them.

SANDBOX  := go run ./src/cmd/sandbox
LINT     := GOGC=300 GOMEMLIMIT=8GiB go tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 10s
KILLS    ?= 100
SEED     ?= 1
N        ?= 3
SCENARIO ?= objects
GOALS    := objects changes many replicas regions charts week stored

# Parsers, codecs, ciphers and compressors have no goroutines, and watching their memory takes half
# of the CPU time of some tests. This project, and the libraries that have goroutines, are watched
# for races. With -l, the detector sees the locks of the others. See docs/decisions/0022-race-detector.md.
SERIAL := archive/... bufio bytes compress/... container/... crypto/... encoding/... fmt hash/... html/... image/... \
	maps math/... mime/... path/... reflect regexp/... slices sort strconv strings text/... unicode/... vendor/golang.org/x/text/... \
	vendor/golang.org/x/net/http2/hpack golang.org/x/net/http2/hpack golang.org/x/text/... \
	golang.org/x/crypto/chacha20/... golang.org/x/crypto/curve25519/... golang.org/x/crypto/hkdf/... golang.org/x/crypto/scrypt/... \
	k8s.io/api/... k8s.io/apimachinery/pkg/api/... k8s.io/apimachinery/pkg/apis/... k8s.io/apimachinery/pkg/runtime/... \
	k8s.io/client-go/applyconfigurations/... k8s.io/kube-openapi/... sigs.k8s.io/... go.yaml.in/... gopkg.in/yaml.v3/... \
	github.com/goccy/... github.com/oasdiff/... github.com/getkin/... github.com/gogo/... github.com/go-openapi/... \
	github.com/google/btree github.com/google/cel-go/... github.com/google/gnostic-models/... github.com/cedar-policy/... \
	github.com/tink-crypto/... github.com/Masterminds/... helm.sh/... go.mongodb.org/mongo-driver/v2/bson/...
WATCHED := crypto/tls k8s.io/kube-openapi/pkg/cached
RACE := -race $(SERIAL:%=-gcflags='%=-race=false -l') $(WATCHED:%=-gcflags=%=)

# With fewer collections of garbage, the compiler and the tests take a tenth less processor time.
TEST := env GOGC=200 go test -vet=off

.DEFAULT_GOAL := help
.PHONY: help build build-race run onap sandbox sandbox-stop test in-turn announce test-deps api-deps test-go test-hosts test-machines test-tacker chaos bench bench-quick golden lint lint-api fmt tidy fuzz subjects check clean
.PHONY: kud-site kud-bundle kud-quick kud-test kud-test-more site-lab site-lab-down

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/k8splugin, one static binary
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w' -o bin/k8splugin ./src/cmd/k8splugin

run: build ## bring up a sample VNF twice, on the sandbox or on $DEMO_KUBECONFIG, and serve
	@if [ -n "$$DEMO_KUBECONFIG" ]; then exec ./bin/k8splugin demo; fi; \
	kubeconfig=$$($(SANDBOX) up) && exec ./bin/k8splugin demo --kubeconfig "$$kubeconfig" --data "$$(dirname "$$kubeconfig")/data"

onap: build ## start simulators of ONAP's components, and drive a firewall through them; with ONCE=1, end then
	go build -o bin/k8splugin-onap ./src/cmd/k8splugin-onap
	@kubeconfig=$$($(SANDBOX) up) && $(SANDBOX) kubectl apply -f src/cluster/clustertest/networks.yaml && \
	exec ./bin/k8splugin-onap up --kubeconfig "$$kubeconfig" $(if $(ONCE),--once)

sandbox: ## start a real control plane on loopback; print its kubeconfig
	@$(SANDBOX) up

sandbox-stop: ## stop it
	@$(SANDBOX) down

# The collection's host has one processor and mostly waits, so the rest runs beside it.
BESIDE_KUD = $(MAKE) --no-print-directory -j2 kud-quick in-turn PARTS='$(1) test-go test-hosts test-tacker'

test: announce test-deps ## run everything (the first time it builds what it needs: about 10 minutes)
	@$(call BESIDE_KUD)

in-turn: # the targets PARTS, one after another
	@for part in $(PARTS); do $(MAKE) --no-print-directory $$part || exit 1; done

announce: # what make test will do
	@echo 'The collection in kud/ on one host; beside it every Go package under the race detector, about 40 minutes on two cores; then packets between two real nodes, 4 minutes; then the client of OpenStack Tacker, 4 minutes.'
	@echo 'Each package is told when it and those before it are done. The first time, Kubernetes is built, about 10 minutes.'

test-deps: api-deps # Ansible, what it is checked with, and what a host is made of
	@kud/lab/lab deps

# Generated tests start from one seed, so that they fail only after a change. RAPID_SEED=0 tries
# others.
RAPID_SEED ?= 1
export RAPID_SEED

# These tests try everything, one case after another. They do so without the race detector, which
# makes them many times slower; with it, TestDeaths tries some of its cases, and the others do not run.
EXHAUSTIVE = $(shell grep -rlE --include='*_test.go' '^//go:build !race|operationtest[.]Deaths' src)

test-go: ## run the tests of the service with a separate sandbox
	@GORACE=atexit_sleep_ms=0 $(SANDBOX) exec -- $(TEST) $(RACE) -p 3 -timeout 60m ./...
	@$(SANDBOX) exec -- $(TEST) -timeout 30m -run "^($$(sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(EXHAUSTIVE) | paste -sd '|'))\$$" \
		$(sort $(dir $(EXHAUSTIVE:%=./%)))
	$(TEST) ./src/lifecycle -run '^TestGrowth$$' -growth 60000

test-hosts: ## run VNFs on two real nodes: packets between pods, data that stays; needs root
	@kud/lab/lab deps
	@GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -tags hosts -timeout 20m -exec 'go run $(CURDIR)/src/cmd/sandbox exec --hosts 2 --' ./src/cmd/k8splugin -run '^TestHosts'

test-machines: ## run a virtual machine of KubeVirt on a real node, without KVM (the first time, KubeVirt is built); needs root
	@kud/lab/lab deps
	@folder=$$(deployments/sandbox/kubevirt/build) && K8SPLUGIN_KUBEVIRT=$$folder GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -tags hosts,machines -timeout 40m \
		-exec "go run $(CURDIR)/src/cmd/sandbox exec --hosts 1 --images $$folder/images --" ./src/cmd/k8splugin -run '^TestMachines'

test-tacker: ## run the client of OpenStack Tacker against the service (the first time, it is installed, as root)
	@tools/tacker/deps
	@GORACE=atexit_sleep_ms=0 $(SANDBOX) exec -- $(TEST) $(RACE) -tags tacker -timeout 30m ./src/cmd/k8splugin -run '^TestTacker'

build-race: # the service with the race detector, which test-go runs, as OUT
	GOGC=400 go build $(RACE) -o $(OUT) ./src/cmd/k8splugin

chaos: ## kill servers and database nodes and cut networks under load, KILLS times; see docs/reliability.md
	$(SANDBOX) exec -- go run ./src/cmd/chaos --kills $(KILLS) --seed $(SEED)

bench: build bin/helm bin/kustomize-controller ## measure the service: SCENARIO=objects against kubectl and Helm, many against Flux, changes, charts, inventory, networks, replicas, stored, vnfs, week or regions; all: those with goals
	set -e; for scenario in $(if $(filter all,$(SCENARIO)),$(GOALS),$(SCENARIO)); do \
		case $$scenario in stored|regions|inventory|charts|week|many) sandbox= ;; *) sandbox="$(SANDBOX) exec --" ;; esac; \
		$$sandbox go run ./src/cmd/bench --scenario $$scenario; \
	done

bench-quick: build ## fail if the service takes twice as long, compared to bare requests, as docs/benchmarks.md records (one minute)
	$(SANDBOX) exec -- go run ./src/cmd/bench --scenario quick

bin/helm: tools/helm/go.mod
	CGO_ENABLED=0 go build -modfile=tools/helm/go.mod -o $@ helm.sh/helm/v4/cmd/helm

bin/kustomize-controller: tools/flux/go.mod
	CGO_ENABLED=0 go build -modfile=tools/flux/go.mod -trimpath -ldflags '-s -w' -o $@ github.com/fluxcd/kustomize-controller

golden: ## rewrite the golden files of the tests, and the Go client of the API; read the difference
	go generate ./api/client
	go test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' src | xargs -n1 dirname | sort -u | sed 's|^|./|') -update

lint: ## run the linters
	$(LINT) run ./...

lint-api: api-deps ## lint swagger.yaml, and generate and compile its clients in Go, TypeScript and Python
	tools/api/lint

api-deps: # Node.js, Java, and modules of Python
	@tools/api/lint deps

fmt: ## format the code
	$(LINT) fmt ./...

tidy: ## tidy the modules
	go mod tidy
	go -C tools mod tidy
	go -C tools/api mod tidy
	go -C tools/helm mod tidy
	go -C tools/flux mod tidy

fuzz: ## run each fuzzer for FUZZTIME
	@grep -rno --include='*_test.go' 'func Fuzz[A-Za-z0-9_]*' src | while IFS=: read -r file _ name; do \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "./$$(dirname "$$file")" || exit 1; done

kud-site: ## build, prove and register the site of INVENTORY=folder; kud/README.md
	@test -n "$(INVENTORY)" || { echo 'say which: make kud-site INVENTORY=kud/inventory/aio (aio, reference and ha are there as examples)'; exit 2; }
	kud/bin/kud site -i $(INVENTORY)

kud-bundle: ## fetch what hosts without internet install into DIR=folder, with its manifest
	@test -n "$(DIR)" || { echo 'say where to: make kud-bundle DIR=/srv/kud'; exit 2; }
	kud/bin/kud bundle $(DIR)

kud-quick: test-deps ## hold the collection of kud/ against one host, without a cluster
	kud/lab/test --quick

site-lab: ## make N hosts on this machine, each with its own kernel, and what a site installs (both built the first time: some 40 minutes)
	@kud/lab/lab deps
	@kud/lab/lab artifacts >/dev/null
	@LAB_KERNEL=$${LAB_KERNEL:-lab} kud/lab/lab up $(N)

kud-test: ## hold the collection against the hosts of site-lab, step by step (some two and a half hours on two cores); docs/kud.md
	LAB_KERNEL=$${LAB_KERNEL:-lab} kud/lab/test

kud-test-more: ## hold other control planes, and sites through the service, against hosts of their own (some two hours more)
	LAB_KERNEL=$${LAB_KERNEL:-lab} kud/lab/test --more
	LAB_KERNEL=$${LAB_KERNEL:-lab} kud/lab/sites

site-lab-down: ## remove the hosts, and whatever else there is of them
	@kud/lab/lab down

subjects: ## hold the subjects of commits to their form
	@.ci/subjects

check: tidy fmt subjects announce test-deps ## what a change must pass; fails if it leaves the tree dirty
	@$(call BESIDE_KUD,lint lint-api)
	@$(MAKE) --no-print-directory bench-quick
	@test -z "$$(git status --porcelain)" || { git status --short; echo 'the tree is dirty'; exit 1; }

clean: ## remove what was built here; the sandbox stays in the user's cache
	rm -rf bin
