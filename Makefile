# Tools are pinned in tools/go.mod, so they are no dependencies of the SDK.
TOOL = go tool -modfile=tools/go.mod

# Separate modules keep their dependencies out of the SDK. RELEASED are released with the SDK; OTHERS are not.
RELEASED = $(patsubst %/go.mod,%,$(wildcard collector/*/go.mod))
OTHERS = collector/internal/adapters dashboards/gen deploy tools

# The flag for the race detector, or empty without the C compiler that the race detector needs.
RACE = $(shell .ci/setup --check cc 2>/dev/null && echo -race)

# Disable cgo unless a C compiler with headers is installed. Go would also try a compiler without headers, and fail.
test lint: export CGO_ENABLED = $(if $(RACE),1,0)

# Nonempty if this machine runs 32-bit programs.
386 = $(filter Linux-x86_64 Linux-i686,$(shell uname -sm | tr ' ' -))

# The promtool binary for dashboards/rules. If empty, make builds it, which takes some minutes the first time.
PROMTOOL ?=

# The packages with concurrent code.
CONCURRENT = ./leap ./node ./collector/... ./exporter/... ./cmd/windowstat ./cmd/windowstat/internal/replay ./cmd/windowstat/internal/webconfig

FUZZTIME ?= 1m
HAMMER ?= 2m

.PHONY: help run test check setup e2e pictures screens paused sentinel late closing killed healed suspended proxied replay-memory attack consumers fleet race 386 api release release-check dist vuln dashboards deploy rules lint fmt bench quick hammer storm kill full fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the demo service under load until Ctrl-C; metrics at http://127.0.0.1:9719/metrics
	@dir=$$(mktemp -d) && go build -o $$dir/windowstat ./cmd/windowstat && \
		{ trap : INT; $$dir/windowstat demo; status=$$?; rm -r $$dir; exit $$status; }

# make check runs vet. The tag nomsgpack compiles gin in a third of the time.
test: ## run the tests of all modules: some minutes with an empty build cache
	go test -vet=off ./...
	@set -e; for m in $(RELEASED) $(OTHERS); do (cd $$m; echo $$m; go test -vet=off -tags nomsgpack -short ./...); done

check: setup lint race 386 ## run the other required checks: lint, the race detector, and the engine on 32 bits
	@[ -n "$(RACE)" ] || echo 'Not run: the race detector, because there is no C compiler (gcc, libc6-dev).'
	@[ -n "$(386)" ] || echo 'Not run: the tests on 32 bits, because this machine cannot run programs for linux/386.'

setup:
	@.ci/setup cc || true

e2e: release-check ## test with the real Prometheus, VictoriaMetrics and chromium, and make a release: some three minutes, and up to ten the first time, for their build
	.ci/setup cc chromium npm apache2 haproxy
	cd deploy && go test .
	cd e2e && go mod tidy -diff && go vet -tags fleet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck -tags fleet ./... && go test -v -count=1 -timeout 40m ./...

pictures: ## take docs/live.png from the demo, and pictures of its incidents, for people to check, to e2e/pictures: some twelve minutes
	.ci/setup chromium
	cd e2e && WINDOWSTAT_E2E_INCIDENTS=1 go test -v -count=1 -timeout 40m -run 'TestPictures$$|TestIncidentPictures$$' . -update

screens: ## run a service with every kind of error for ten minutes, compare every view of it with its own counts, and log the alerts
	cd e2e && WINDOWSTAT_E2E_SCREENS=10m go test -v -count=1 -timeout 40m -run 'TestScreens$$' .

paused: ## run servers that periodically stall, for twenty minutes
	cd e2e && WINDOWSTAT_E2E_PAUSED=20m go test -v -count=1 -timeout 40m -run TestPaused .

sentinel: ## follow ten minutes of Sentinel's logs from the first second: eleven minutes
	cd e2e && WINDOWSTAT_E2E_SENTINEL=10m go test -v -count=1 -timeout 30m -run 'TestSentinel$$' .

late: ## test timed-out scrapes whose connections close with a delay, on busy processors, and an hour of undisturbed scrapes: some nine minutes
	cd e2e && WINDOWSTAT_E2E_LATE=4m go test -v -count=1 -timeout 40m -run 'TestLate$$' .
	cd e2e && WINDOWSTAT_E2E_LATE=4m go test -v -count=1 -timeout 40m -run 'TestCalm$$' .

closing: ## measure the delay until clients close the connection of a timed-out scrape: some eight minutes
	cd e2e && WINDOWSTAT_E2E_CLOSING=10s go test -v -count=1 -timeout 40m -run 'TestClosing$$' .

killed: ## kill a pushing service twenty times: some five minutes
	cd e2e && WINDOWSTAT_E2E_KILLS=20 go test -v -count=1 -timeout 40m -run TestKilledPushes .

healed: ## run an hour of random processes, labels, gaps, kills and heals over one log, in fast motion
	cd e2e && WINDOWSTAT_E2E_HEALED=1h go test -v -count=1 -timeout 90m -run TestHealAtRandom .

suspended: ## stop a service for a minute, twice: some three minutes
	cd e2e && WINDOWSTAT_E2E_SUSPENDED=1m go test -v -count=1 -timeout 40m -run 'TestSuspended$$' .

proxied: ## send ten minutes of random requests and responses through the proxy and nginx
	cd e2e && WINDOWSTAT_E2E_PROXIED=10m go test -v -count=1 -timeout 40m -run TestProxyFuzzedBesideNginx .

replay-memory: ## measure the maximum memory of a replay of 10 GB with 100,000 paths, at each GB; some ten minutes, and a gigabyte of space in TMPDIR
	cd e2e && WINDOWSTAT_E2E_REPLAY_GB=10 go test -v -count=1 -timeout 60m -run TestReplayMemory .

attack: ## attack the proxy, the pages and the receiver of spans with slow readers, floods, made-up names and five thousand clients that hold resources, and update the tables of docs/security.md and docs/otlp.md: some twenty minutes
	go test -v -count=1 -timeout 20m -run 'SlowReadersDoNotBlockScrapes|MadeUpCursors' ./exporter/prom -attack
	go test -v -count=1 -run 'StalledClientsAreDisconnected|PollsInALoop|SlowViewers|StreamsAreShared|RequestsInExcess' ./exporter ./exporter/live
	go test -v -count=1 -run 'ManyHostsCannotBlockClients|Flood|Reconnections' ./internal/netlimit -attack
	cd e2e && WINDOWSTAT_E2E_ATTACK=5000 go test -v -count=1 -parallel 1 -timeout 40m -run 'TestProxyAttacked|TestOTLPAttacked|TestHeadersTakeLittleMemory' . -update

consumers: ## build the OpenTelemetry Collector and Thanos and test with them, and send 30,000 spans a second: some five minutes each the first time, then four for all
	cd e2e && go vet -tags fleet ./... && go test -tags fleet -v -count=1 -timeout 60m -run 'TestOpenTelemetryCollector|TestThanosReceive|TestSpansRate|TestSpanmetrics|TestSpansForwardedByACollector' .

fleet: ## compare the cost of each exporter with scraping every second, push from two hundred instances to one server, and sample 50,000 series: some six minutes
	cd e2e && go vet -tags fleet ./... && go test -tags fleet -v -count=1 -timeout 30m -run 'TestCost|TestHundredsOfInstances|TestSamplerTruthOfMany' .

# A program under the race detector sleeps for a second before it exits, unless GORACE says otherwise. Tests start many.
race: export GORACE = atexit_sleep_ms=10
race: setup ## run the tests of the concurrent packages and of the adapters under the race detector (needs gcc)
	$(if $(RACE),CGO_ENABLED=1 go test -race -short $(CONCURRENT))
	$(if $(RACE),@set -e; for m in $(RELEASED) $(filter collector/%,$(OTHERS)); do (cd $$m; echo $$m; CGO_ENABLED=1 go test -race -short ./...); done)

386: ## run the tests of the engine on 32 bits
	$(if $(386),CGO_ENABLED=0 GOARCH=386 go test -short ./leap ./node)

api: ## print the changes of the exported API since the last release
	cd tools && go run ./release api

release: ## commit and tag VERSION of all modules, such as v0.2.0, if all tests pass
	cd tools && go run ./release make '$(VERSION)'

release-check: ## make a release of a copy of this tree, and use it like an outside user
	cd tools && go test -count=1 -timeout 40m -v ./release

dist: ## write archives, SBOMs and checksums of VERSION for all systems to dist/; the tag must be checked out
	cd tools && go run ./dist -version '$(VERSION)' -out '$(CURDIR)/dist'

vuln: ## list known vulnerabilities of the modules with govulncheck (needs access to its database)
	@for m in . $(RELEASED); do (cd $$m; echo "$$m"; $(TOOL) govulncheck ./...) || exit; done

dashboards: ## generate the dashboards from dashboards/gen
	cd dashboards/gen && go run . -out ..

deploy: ## generate the examples for Kubernetes from dashboards/rules
	cd deploy && go test -count=1 -run TestRules -update .

rules: ## test the Prometheus rules, those of a configured mixin, and the configuration with PROMTOOL
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; promtool=$(PROMTOOL); \
	if [ -z "$$promtool" ]; then promtool=$$dir/promtool; (cd $$dir && go mod init promtool && \
		go get github.com/prometheus/prometheus/cmd/promtool@v0.315.0 && \
		go build -buildvcs=false -tags remove_all_sd,netgo -o promtool github.com/prometheus/prometheus/cmd/promtool); fi; \
	cd dashboards/rules && $$promtool check rules recording.yaml alerts.yaml && $$promtool test rules test.yaml hours.yaml && \
	$$promtool check config --syntax-only ../compose/prometheus.yaml && $$promtool check config --syntax-only ../compose/prometheus-2.yaml && \
	cd ../../deploy && go test -count=1 -run TestConfiguredRules . -promtool $$promtool

# Lines have at most 120 columns. A tab counts as 4 columns, and a character of several bytes as one: awk removes all
# bytes but the first.
lint: ## check gofumpt and the length of lines, and in each module go vet, staticcheck and go mod tidy
	@unformatted=$$($(TOOL) gofumpt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	@LC_ALL=C awk -v max=120 '{ line = $$0; gsub(/\t/, "    ", line); gsub(/[\200-\277]/, "", line) } \
		length(line) > max { print FILENAME ":" FNR ": longer than " max " columns"; bad = 1 } \
		END { exit bad }' $$(git ls-files '*.go')
	@set -e; for m in . $(RELEASED) $(OTHERS); do \
		(cd $$m; echo "$$m"; go mod tidy -diff; go vet ./...; go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...); \
	done

fmt: ## format the code
	$(TOOL) gofumpt -w .

bench: ## compare the engine with its rivals, ten times, and write bench/RESULTS.md
	$(MAKE) -C bench results stat

quick: ## run the engine's own benchmarks
	go test -run '^$$' -bench . -benchmem ./node ./collector/...

hammer: ## run the conservation hammer for HAMMER (default 2m)
	go test -run TestNothingIsLostAcrossTurns -v -timeout 60m ./node -hammer $(HAMMER)

storm: ## send a million made-up paths to services with routes for all of them, some or none; half a minute
	go test -run TestStorm -v -timeout 20m ./cmd/windowstat -storm 1000000

kill: ## check the metric log of a thousand killed processes; some five minutes
	go test -run TestKilled -v -timeout 60m ./exporter/metriclog -kills 1000

full: ## test the metric log on a small full filesystem (root on Linux)
	go test -run TestFullFilesystem -v ./exporter/metriclog -tmpfs

fuzz: ## run every fuzz target for FUZZTIME (default 1m)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | sed 's/^func //' | while read -r target; do \
			echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir; \
		done; \
	done
