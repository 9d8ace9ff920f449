# Tools are pinned in tools/go.mod, out of the way of whoever imports the SDK.
TOOL = go tool -modfile=tools/go.mod

# Modules of their own, so that who imports the SDK does not get what they need: those that are released with it, and others.
RELEASED = $(patsubst %/go.mod,%,$(wildcard collector/*/go.mod))
OTHERS = collector/internal/adapters dashboards/gen deploy tools

# The race detector, if there is the C compiler that it needs.
RACE = $(shell .ci/setup --check cc 2>/dev/null && echo -race)

# Without one nothing is to be compiled with C, nor with one that has no headers, which Go would try.
test lint: export CGO_ENABLED = $(if $(RACE),1,0)

# Something, if this machine runs programs of 32 bits.
386 = $(filter Linux-x86_64 Linux-i686,$(shell uname -sm | tr ' ' -))

# What tests the rules of dashboards/rules; built if empty, which takes some minutes the first time.
PROMTOOL ?=

# The packages that several goroutines run through.
CONCURRENT = ./leap ./node ./collector/... ./exporter/... ./cmd/windowstat ./cmd/windowstat/internal/replay ./cmd/windowstat/internal/webconfig

FUZZTIME ?= 1m
HAMMER ?= 2m

.PHONY: help run test check setup e2e screens paused sentinel late closing killed healed suspended proxied replay-memory attack consumers fleet race 386 api release release-check dist vuln dashboards deploy rules lint fmt bench quick hammer storm kill full fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the demo service under load until Ctrl-C; metrics at http://127.0.0.1:9719/metrics
	@dir=$$(mktemp -d) && go build -o $$dir/windowstat ./cmd/windowstat && \
		{ trap : INT; $$dir/windowstat demo; status=$$?; rm -r $$dir; exit $$status; }

# What vet finds is for make check. Without its msgpack gin compiles in a third of the time.
test: ## the tests of all modules: some minutes with an empty build cache
	go test -vet=off ./...
	@set -e; for m in $(RELEASED) $(OTHERS); do (cd $$m; echo $$m; go test -vet=off -tags nomsgpack -short ./...); done

check: setup lint race 386 ## what a change has to pass besides: lint, the race detector, and the engine on 32 bits
	@[ -n "$(RACE)" ] || echo 'Not run: the race detector, because there is no C compiler (gcc, libc6-dev).'
	@[ -n "$(386)" ] || echo 'Not run: the tests on 32 bits, because this machine cannot run programs for linux/386.'

setup:
	@.ci/setup cc || true

e2e: release-check ## the real Prometheus, VictoriaMetrics and chromium, and a release: some three minutes, and up to ten the first time, when it builds them
	.ci/setup cc chromium npm apache2 haproxy
	cd deploy && go test .
	cd e2e && go mod tidy -diff && go vet -tags fleet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck -tags fleet ./... && go test -v -count=1 -timeout 40m ./...

screens: ## ten minutes of a service in every trouble, beside every view of it, and what the alerts said
	cd e2e && WINDOWSTAT_E2E_SCREENS=10m go test -v -count=1 -timeout 40m -run 'TestScreens$$' .

paused: ## twenty minutes of servers that stand still now and then
	cd e2e && WINDOWSTAT_E2E_PAUSED=20m go test -v -count=1 -timeout 40m -run TestPaused .

sentinel: ## Sentinel's logs of ten minutes, followed from the first second: eleven minutes
	cd e2e && WINDOWSTAT_E2E_SENTINEL=10m go test -v -count=1 -timeout 30m -run 'TestSentinel$$' .

late: ## connections of timed-out scrapes that close late, on busy processors, and a calm hour of scrapes: some nine minutes
	cd e2e && WINDOWSTAT_E2E_LATE=4m go test -v -count=1 -timeout 40m -run 'TestLate$$' .
	cd e2e && WINDOWSTAT_E2E_LATE=4m go test -v -count=1 -timeout 40m -run 'TestCalm$$' .

closing: ## how late clients close the connection of a scrape that timed out: some eight minutes
	cd e2e && WINDOWSTAT_E2E_CLOSING=10s go test -v -count=1 -timeout 40m -run 'TestClosing$$' .

killed: ## a service that pushes is killed twenty times: some five minutes
	cd e2e && WINDOWSTAT_E2E_KILLS=20 go test -v -count=1 -timeout 40m -run TestKilledPushes .

healed: ## an hour of processes, labels, holes, kills and heals at random over one log, in fast motion
	cd e2e && WINDOWSTAT_E2E_HEALED=1h go test -v -count=1 -timeout 90m -run TestHealAtRandom .

suspended: ## a service that is stopped for a minute, twice: some three minutes
	cd e2e && WINDOWSTAT_E2E_SUSPENDED=1m go test -v -count=1 -timeout 40m -run 'TestSuspended$$' .

proxied: ## ten minutes of random requests and answers through the proxy and nginx
	cd e2e && WINDOWSTAT_E2E_PROXIED=10m go test -v -count=1 -timeout 40m -run TestProxyFuzzedBesideNginx .

replay-memory: ## what a replay of 10 GB of 100,000 paths holds at most, at each GB; some ten minutes, and a gigabyte of room in TMPDIR
	cd e2e && WINDOWSTAT_E2E_REPLAY_GB=10 go test -v -count=1 -timeout 60m -run TestReplayMemory .

attack: ## slow readers, floods, made-up names, and five thousand clients that hold what they can, of the proxy, the pages and the receiver of spans, and the tables of docs/security.md and docs/otlp.md: some twenty minutes
	go test -v -count=1 -timeout 20m -run 'SlowReadersDoNotBlockScrapes|MadeUpCursors' ./exporter/prom -attack
	go test -v -count=1 -run 'StalledClientsAreDisconnected|PollsInALoop|SlowViewers|StreamsAreShared|RequestsInExcess' ./exporter ./exporter/live
	go test -v -count=1 -run 'ManyHostsCannotBlockClients|Flood|Reconnections' ./internal/netlimit -attack
	cd e2e && WINDOWSTAT_E2E_ATTACK=5000 go test -v -count=1 -timeout 40m -run 'TestProxyAttacked|TestOTLPAttacked|TestHeadersTakeLittleMemory' . -update

consumers: ## the OpenTelemetry Collector and Thanos, which are built first, and 30,000 spans a second: some five minutes each the first time, then four for all
	cd e2e && go vet -tags fleet ./... && go test -tags fleet -v -count=1 -timeout 60m -run 'TestOpenTelemetryCollector|TestThanosReceive|TestSpansRate|TestSpanmetrics|TestSpansForwardedByACollector' .

fleet: ## what each way costs beside scraping every second, two hundred instances that push to one server, 50,000 sampled series: some six minutes
	cd e2e && go vet -tags fleet ./... && go test -tags fleet -v -count=1 -timeout 30m -run 'TestCost|TestHundredsOfInstances|TestSamplerTruthOfMany' .

race: setup ## the tests of the concurrent packages and of the adapters under the race detector (needs gcc)
	$(if $(RACE),CGO_ENABLED=1 go test -race -short $(CONCURRENT))
	$(if $(RACE),@set -e; for m in $(RELEASED) $(filter collector/%,$(OTHERS)); do (cd $$m; echo $$m; CGO_ENABLED=1 go test -race -short ./...); done)

386: ## the tests of the engine on 32 bits
	$(if $(386),CGO_ENABLED=0 GOARCH=386 go test -short ./leap ./node)

api: ## what of the exported surface has changed since the last release
	cd tools && go run ./release api

release: ## commit and tag VERSION of all modules, such as v0.2.0, when all tests pass
	cd tools && go run ./release make '$(VERSION)'

release-check: ## make a release of a copy of this tree, and use it as a stranger does
	cd tools && go test -count=1 -timeout 40m -v ./release

dist: ## archives, SBOMs and checksums of VERSION, whose tag must be checked out, for all systems, in dist/
	cd tools && go run ./dist -version '$(VERSION)' -out '$(CURDIR)/dist'

vuln: ## known vulnerabilities in the modules, with govulncheck; needs access to its database
	@for m in . $(RELEASED); do (cd $$m; echo "$$m"; $(TOOL) govulncheck ./...) || exit; done

dashboards: ## write the dashboards again from dashboards/gen
	cd dashboards/gen && go run . -out ..

deploy: ## write the examples for Kubernetes again from dashboards/rules
	cd deploy && go test -count=1 -run TestRules -update .

rules: ## the unit tests of the rules for Prometheus, and its configuration, with PROMTOOL
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; promtool=$(PROMTOOL); \
	if [ -z "$$promtool" ]; then promtool=$$dir/promtool; (cd $$dir && go mod init promtool && \
		go get github.com/prometheus/prometheus/cmd/promtool@v0.315.0 && \
		go build -buildvcs=false -tags remove_all_sd,netgo -o promtool github.com/prometheus/prometheus/cmd/promtool); fi; \
	cd dashboards/rules && $$promtool check rules recording.yaml alerts.yaml && $$promtool test rules test.yaml hours.yaml && \
	$$promtool check config --syntax-only ../compose/prometheus.yaml && $$promtool check config --syntax-only ../compose/prometheus-2.yaml

# Go files in which lint allows at most 120 columns per line. A tab counts as 4 columns, and a character of several bytes
# as one: awk removes all bytes but the first. Add a directory when its lines fit.
SHORT_LINES = 'leap/*.go' 'node/*.go' 'collector/*.go' 'exporter/*.go' 'internal/*.go' ':(glob)cmd/windowstat/*.go' \
	$(foreach p,demo flags incident logquery routes server telemetry verification wallclock webconfig,'cmd/windowstat/internal/$(p)/*.go')

lint: ## gofumpt, the length of lines, and in each module go vet, staticcheck and go mod tidy
	@unformatted=$$($(TOOL) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	@LC_ALL=C awk -v max=120 '{ line = $$0; gsub(/\t/, "    ", line); gsub(/[\200-\277]/, "", line) } \
		length(line) > max { print FILENAME ":" FNR ": longer than " max " columns"; bad = 1 } \
		END { exit bad }' $$(git ls-files $(SHORT_LINES))
	@set -e; for m in . $(RELEASED) $(OTHERS); do \
		(cd $$m; echo "$$m"; go mod tidy -diff; go vet ./...; go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...); \
	done

fmt: ## format the code
	$(TOOL) gofumpt -w .

bench: ## the engine beside its rivals, ten times over; the result goes to bench/RESULTS.md
	$(MAKE) -C bench results stat

quick: ## the engine's own benchmarks
	go test -run '^$$' -bench . -benchmem ./node ./collector/...

hammer: ## the conservation hammer for HAMMER (default 2m)
	go test -run TestNothingIsLostAcrossTurns -v -timeout 60m ./node -hammer $(HAMMER)

storm: ## a million made-up paths before services that know all of them, some or none; half a minute
	go test -run TestStorm -v -timeout 20m ./cmd/windowstat -storm 1000000

kill: ## the metric log of a thousand processes that are killed, some five minutes
	go test -run TestKilled -v -timeout 60m ./exporter/metriclog -kills 1000

full: ## the metric log on a small filesystem that is full (root on Linux)
	go test -run TestFullFilesystem -v ./exporter/metriclog -tmpfs

fuzz: ## every fuzz target for FUZZTIME (default 1m)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | sed 's/^func //' | while read -r target; do \
			echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir; \
		done; \
	done
