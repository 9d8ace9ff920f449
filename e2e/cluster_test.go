package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

const (
	clusterJob       = "cluster"
	clusterInstances = 5
	clusterPushing   = 3 // instances that push; the others are scraped
	clusterPause     = 6 * time.Second
	// A burst happens in the twelfth second of each process, so all processes must live longer.
	clusterWarm = 15 * time.Second
)

// TestCluster runs five instances of a service, which are restarted one after the other. Two stores receive their
// seconds. The cluster of VictoriaMetrics receives pushes of some instances, and an agent scrapes the others for it. A
// Prometheus scrapes all instances. For each second the sum over the instances must be the number of calls that they
// counted.
func TestCluster(t *testing.T) {
	t.Parallel()
	storage := startCluster(t)
	var instances []*child
	var all, scraped []string
	for i := range clusterInstances {
		c := &child{dir: t.TempDir(), addr: freeAddress(t)}
		if i < clusterPushing {
			c.push = storage.write
		} else {
			scraped = append(scraped, c.addr)
		}
		all = append(all, c.addr)
		instances = append(instances, c)
		c.start(t)
		t.Cleanup(c.kill)
	}
	begin := time.Now().Unix()
	read := job{name: clusterJob, path: secondsPath, interval: 5 * time.Second}
	read.targets = scraped
	storage.startAgent(t, read)
	read.targets = all
	servers := []*server{storage.server, startServer(t, "prometheus-3", prometheus3, read)}

	time.Sleep(clusterWarm)
	for _, c := range instances {
		time.Sleep(clusterPause)
		c.end(t)
		c.start(t)
	}
	time.Sleep(clusterWarm)
	end := time.Now().Unix() - 1

	byInstance, sums := map[string][]metriclog.Row{}, []metriclog.Row(nil)
	for _, c := range instances {
		c.awaitLogged(t, end)
		rows := c.rows(t, end, 50)
		byInstance[c.addr] = rows
		sums = append(sums, rows...)
	}
	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			n := 0
			for _, addr := range all {
				for _, f := range fields {
					// Each series is in one of the stores, which show their samples at different times.
					for _, resource := range called(byInstance[addr], end) {
						await(t, s, fmt.Sprintf(`%s{instance=%q,resource=%q}`, f.metric, addr, resource), end, deadline)
					}
					n += checkRows(t, s, fmt.Sprintf(`%s{instance=%q}[10m]`, f.metric, addr), f, byInstance[addr], end)
				}
			}
			t.Logf("%d samples", n)
			for _, f := range fields {
				checkRows(t, s, fmt.Sprintf(`sum by (resource) (last_over_time(%s{job=%q}[999ms]))[10m:1s]`,
					f.metric, clusterJob), f, sums, end)
			}
			checkGraphs(t, s, sums, begin, end)
		})
	}
}

// called returns the resources that have rows in the last seconds before end.
func called(rows []metriclog.Row, end int64) (resources []string) {
	for _, row := range rows {
		if row.Start.Unix() >= end-5 && !slices.Contains(resources, row.Resource) {
			resources = append(resources, row.Resource)
		}
	}
	return resources
}

// checkGraphs checks the calls of the fleet as a graph with a large step shows them. Each point must be the busiest
// second since the previous one.
func checkGraphs(t *testing.T, s *server, rows []metriclog.Row, begin, end int64) {
	t.Helper()
	calls := map[int64]float64{}
	for _, row := range rows {
		if row.Resource == "burst" {
			calls[row.Start.Unix()] += float64(row.Pass)
		}
	}
	sum := fmt.Sprintf(`sum(last_over_time(windowstat_persecond_pass{job=%q,resource="burst"}[999ms]))`, clusterJob)
	for _, step := range []int64{15, 300} {
		// The range is one millisecond shorter, so the second at the previous step is not in it.
		graph := fmt.Sprintf("max_over_time(%s[%ds999ms:1s])", sum, step-1)
		from := begin + 10
		to := from + (end-1-from+step-1)/step*step
		points, highestPoint := 0, 0.0
		for _, x := range s.queryRange(t, graph, from, to, step) {
			for _, v := range x.Values {
				points++
				highestPoint = max(highestPoint, v.value)
				want := highest(min(v.at/1000, end-1), step, func(second int64) float64 { return calls[second] })
				if v.value != want && v.at/1000 < end {
					t.Errorf("%s: %s at %d is %v; it should be %v", s.name, graph, v.at/1000, v.value, want)
				}
			}
		}
		naive := 0.0
		for _, x := range s.queryRange(t, sum, from, to, step) {
			for _, v := range x.Values {
				naive = max(naive, v.value)
			}
		}
		t.Logf("%d points at steps of %d s, the highest is %v; without max_over_time it would be %v",
			points, step, highestPoint, naive)
	}
}

// A storage is the cluster of VictoriaMetrics. The embedded server handles queries.
type storage struct {
	*server
	dir   string // of the executables
	write string // URL for pushes
}

// clusterDir is the environment variable with a directory of vmstorage, vminsert, vmselect and vmagent of another
// version. The Go module proxy does not have every version.
const clusterDir = "WINDOWSTAT_E2E_CLUSTER"

// startCluster starts two stores, one component that writes to both, and one that reads from both.
func startCluster(t *testing.T) *storage {
	t.Helper()
	x := &storage{dir: os.Getenv(clusterDir)}
	if x.dir == "" {
		x.dir = cluster.path(t)
	}
	var writers, readers []string
	var stores []*server
	const dedup = "-dedup.minScrapeInterval=1ms" // removes samples that are sent twice
	for i := range 2 {
		writer, reader := freeAddress(t), freeAddress(t)
		stores = append(stores, x.start(t, fmt.Sprintf("vmstorage-%d", i), "vmstorage", "-vminsertAddr="+writer,
			"-vmselectAddr="+reader, dedup))
		writers, readers = append(writers, writer), append(readers, reader)
	}
	insert := x.start(t, "vminsert", "vminsert", "-storageNode="+strings.Join(writers, ","))
	x.server = x.start(t, "vmselect", "vmselect", "-storageNode="+strings.Join(readers, ","),
		"-search.latencyOffset=0s", dedup)
	x.server.queries, x.server.stores = "/select/0/prometheus", stores
	x.write = "http://" + insert.addr + "/insert/0/prometheus/api/v1/write"
	return x
}

// startAgent starts an agent that scrapes for the cluster.
func (x *storage) startAgent(t *testing.T, jobs ...job) {
	t.Helper()
	agent := newServer(t, "vmagent", filepath.Join(x.dir, "vmagent"), true)
	agent.args = []string{
		"-httpListenAddr=" + agent.addr, "-promscrape.config=" + agent.writeConfig(t, agent.config(jobs)),
		"-remoteWrite.url=" + x.write, "-remoteWrite.tmpDataPath=" + filepath.Join(agent.dir, "data"),
	}
	agent.start(t)
}

// start starts a part of the cluster.
func (x *storage) start(t *testing.T, name, app string, args ...string) *server {
	t.Helper()
	s := newServer(t, name, filepath.Join(x.dir, app), true)
	s.args = append([]string{"-httpListenAddr=" + s.addr}, args...)
	switch data := filepath.Join(s.dir, "data"); app {
	case "vmstorage":
		s.args = append(s.args, "-storageDataPath="+data)
	case "vmselect":
		s.args = append(s.args, "-cacheDataPath="+data)
	}
	s.start(t)
	return s
}
