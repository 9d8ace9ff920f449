package push

import (
	"bufio"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// TestComplianceSender is a sender for remotewrite/sender of github.com/prometheus/compliance, which tests remote write
// 2.0. It forwards the samples of a page in the text format every five seconds, until it is interrupted. Prometheus
// waits as long before it sends a request that is not full, and the suite counts requests to detect retries. The test
// is skipped unless COMPLIANCE_SCRAPE and COMPLIANCE_RECEIVER are set, the URLs of the page and of the receiver.
//
// To run the suite, compile this package with go test -c, and add a target to registeredTargets in main_test.go of the
// suite. The target runs the compiled test with -test.run=TestComplianceSender and both variables, for
// TargetOptions.Timeout, and interrupts it.
func TestComplianceSender(t *testing.T) {
	page, receiver := os.Getenv("COMPLIANCE_SCRAPE"), os.Getenv("COMPLIANCE_RECEIVER")
	if page == "" || receiver == "" {
		t.Skip("it needs the suite")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGINT)
	defer stop()
	o := Options{
		URL: receiver, Format: RemoteWrite2, Labels: map[string]string{"job": "test", "instance": "a:1"},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Drain: 100 * time.Millisecond,
	}
	o.defaults()
	s := newSender(o, maxWait)
	for ctx.Err() == nil {
		began := time.Now()
		x := &splitter{sender: s, Labelled: NewLabelled(nil, o.Labels), done: func(r *request) { s.deliver(ctx, r) }}
		if err := forward(page, x); err != nil {
			t.Log(err)
		}
		x.finish()
		background.Sleep(ctx, time.Until(began.Add(5*time.Second)))
	}
}

// The lines of a page.
var (
	metaLine   = regexp.MustCompile(`^# (HELP|TYPE|UNIT) (\S+) (.*)$`)
	sampleLine = regexp.MustCompile(
		`^([\w:]+)(?:\{(.*?)\})? (\S+)(?: (\d+))?(?: # \{trace_id="(\w+)"\} (\S+)(?: (\S+))?)?$`,
	)
	labelPair = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*")`)
)

// forward writes the samples of a page, with the current time.
func forward(page string, sink seconds.Sink) error {
	resp, err := http.Get(page)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	families := map[string]*table.Family{}
	now := time.Now()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if m := metaLine.FindStringSubmatch(line); m != nil {
			f := families[m[2]]
			if f == nil {
				f = new(table.Family)
				families[m[2]] = f
			}
			switch m[1] {
			case "HELP":
				f.Help = m[3]
			case "TYPE":
				f.Type = table.Type(m[3])
			case "UNIT":
				f.Unit = m[3]
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		f := table.Family{Name: m[1]}
		for _, suffix := range []string{"", "_total", "_bucket", "_count", "_sum"} {
			if known := families[strings.TrimSuffix(m[1], suffix)]; known != nil {
				f = *known
				f.Name = m[1]
				break
			}
		}
		var pairs [][2]string
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			value, err := strconv.Unquote(pair[2])
			if err != nil {
				return err
			}
			pairs = append(pairs, [2]string{pair[1], value})
		}
		slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
		var names, values []string
		for _, pair := range pairs {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		sink.Series(&f, names, values)
		sink.Value(now.Unix(), v)
		if m[5] != "" {
			rt, _ := strconv.ParseFloat(m[6], 64)
			sink.(seconds.Exemplars).Exemplars([]collector.Exemplar{
				{TraceID: m[5], RT: time.Duration(rt * 1e9), At: now},
			})
		}
	}
	return nil
}
