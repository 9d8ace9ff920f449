package prom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/node"
)

// Seconds is the per-second endpoint: a sample for each sealed second of each resource, with the timestamp of that second. A
// value that was served never changes. A resource that has been idle for a minute has its passes alone, until its next call; so
// has all inbound traffic. The metrics have names of their own, because samples with and without timestamps must
// not be mixed in one series. It takes these parameters:
//
//   - cursor=NAME: the seconds that this scraper has not fetched yet, oldest first. A scraper is a name, the host it asks
//     from, and what it asks for; give each server its own name. A new scraper gets the whole history.
//   - window=DURATION: the last seconds, such as 30s, without a position.
//   - metric=NAME, resource=NAME: only these; may be repeated.
//   - histogram=native: adds the histogram of the response times of each second alone, a gauge histogram. It needs a client that
//     accepts protobuf.
//   - histogram=classic: adds the histogram of all response times up to the end of each second, with the timestamp of that. After
//     an idle time it begins again with a sample at the beginning of the second, so that the difference of two is there for each.
//
// Histograms are kept for a minute, or for Options.Windows.Histograms of the Collector; older seconds have none.
//
// Without cursor and window it serves the last 60 seconds. An invalid parameter is answered with 400 and the reason. The
// Accept header chooses text or OpenMetrics, and gzip is used if the client accepts it.
//
// A response is acknowledged if it was written completely, and the client used its HTTP/1.1 connection again or closed it after
// reading everything. The seconds are sent again, up to five times, if the connection broke, if it was closed as the scrape
// timed out, or if it is open when the scraper's next request comes by another one; if the response was large, in responses half
// as large. This needs the listener of [Seconds.Watch]. Without it, on HTTP/2, or behind a proxy, which is known by a header
// Via, Forwarded or X-Forwarded-For or by its address (SecondsOptions.Proxies), a response that was written completely counts
// as delivered but unconfirmed.
//
// Seconds must be made with [NewSeconds], and is safe for concurrent use. Requests of one cursor are served one after the
// other. At most ten pages are computed at a time, and places go to the host that has the fewest; a client that waits longer than
// its scrape timeout gets 503. Slow readers are bounded as those of [Handler] are.
//
// Limitations: with a log, the seconds that were sealed but not logged when the process was killed are lost, usually one. A
// restart assumes that a response was delivered once its last byte was written, unless its connection ended otherwise before; if
// the process was killed before it could save that, within some milliseconds, the response is sent again. A scraper that has read a response and then does not store
// it, because it is over a limit of its own or is killed, has it all the same. Two scrapers that share a cursor name and an
// address get seconds twice and miss others.
type Seconds struct {
	stats        *collector.Collector
	log          Log
	positions    string          // path of the file of positions; empty without a log
	self         *gather.Metrics // nil if windowstat's own metrics are not on the page
	namespace    string
	streams      []seconds.Stream // the resources first
	first        int64            // index of the first second of this process
	oldestLogged int64            // of the first second in the log, within the history; first if there is none
	max          seconds.Size     // of a response
	vmMaxBytes   int              // of a response to VictoriaMetrics
	cursors      cursors
	conns        conns
	proxies      proxies
	logger       *slog.Logger
	out          sender

	saving     sync.Mutex // guards the file of positions
	saveErrors atomic.Int64
}

// NewSeconds makes the endpoint, and restores the positions of scrapers if there is a Log. The error names every invalid
// option.
func NewSeconds(c *collector.Collector, o SecondsOptions) (*Seconds, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "prom", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	vmMaxBytes := cmp.Or(o.MaxBytes, 15<<20)
	o.defaults()
	streams := []seconds.Stream{seconds.NewResources(c, o.Namespace, o.Log)}
	if o.Sampler != nil {
		streams = append(streams, o.Sampler.Stream())
	}
	s := &Seconds{
		stats: c, log: o.Log, namespace: o.Namespace,
		max: seconds.Size{Samples: o.MaxSamples, Bytes: o.MaxBytes}, vmMaxBytes: vmMaxBytes,
		streams: streams,
		first:   c.Tree().View().Node().Since(),
		cursors: cursors{max: o.MaxCursors, all: map[scraper]*cursor{}},
		proxies: o.Proxies,
		logger:  o.Logger,
	}
	s.out.init("seconds", o.Proxies)
	s.oldestLogged = s.first
	if s.log != nil {
		s.log.Logged(s.first-s.history(), s.first, func(_ string, m *node.MetricNode) bool {
			s.oldestLogged = m.Start.Unix()
			return false
		})
		if s.positions, err = s.log.StateFile(positionsName); err != nil {
			return nil, fmt.Errorf("prom: %w; a log serves one per-second endpoint", err)
		}
		s.restore()
	}
	c.Publish(s.metrics()...)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Seconds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	ctx, cancel, ok := s.out.begin(w, r)
	if !ok {
		return
	}
	defer cancel()
	q, err := s.parse(r.URL.RawQuery)
	switch {
	case r.Method != http.MethodGet: // a response without a body would consume seconds
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.native() && !acceptsProtobuf(r):
		http.Error(w, "the native histogram needs a client that accepts protobuf, such as Prometheus with scrape_native_histograms",
			http.StatusNotAcceptable)
	case q.cursor != "":
		s.serveCursor(ctx, w, r, q, began)
	default:
		s.serveWindow(ctx, w, r, q, began)
	}
}

// serveWindow serves the last seconds, without a cursor.
func (s *Seconds) serveWindow(ctx context.Context, w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	leave, err := s.out.place(ctx, r)
	if err != nil {
		busy(w, err)
		return
	}
	defer leave()
	open := s.sealed()
	from := max(open-q.window, s.oldest(open))
	limit := s.limit(r, &q, from, defaultScrapeTimeout)
	if open-from > limit.Seconds {
		if q.hasWindow {
			http.Error(w, fmt.Sprintf("%d seconds are more than the %d samples or %d bytes that a response may have; ask for %d seconds, or for some metrics or resources only",
				open-from, limit.Samples, limit.Bytes, limit.Seconds), http.StatusBadRequest)
			return
		}
		from = open - limit.Seconds
	}
	c, _, err := s.page(r, q, from, open, limit)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	leave()
	_ = s.out.send(w, r, c, began) // an error means that the client has disconnected
}

// serveCursor serves the seconds that the scraper has not fetched yet.
func (s *Seconds) serveCursor(ctx context.Context, w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	x := s.cursors.get(scraper{q.cursor, clientHost(r), q.filter()}, s.out.host(r), s.oldest(s.open()), began)
	if x.acquire(r.Context()) != nil {
		return // the client has disconnected
	}
	defer x.release()
	a := s.newResponse(r, began)
	x.last().wait(r.Context(), a)
	leave, err := s.out.place(ctx, r)
	if err != nil {
		busy(w, err)
		return
	}
	defer leave()
	x.settle(a)
	open := s.sealed()
	from, most := x.begin(began, open, s.history())
	limit := s.limit(r, &q, from, a.timeout)
	limit.Seconds = min(limit.Seconds, most)
	var then func()
	if first, ok := s.unix(from); ok && s.log != nil {
		then = func() {
			if x.last() == a && a.discarded() {
				s.save(x, first) // the process may end before the scraper comes again
			}
		}
	}
	a.after = a.conn.begin(r, then)
	c, to, err := s.page(r, q, from, open, limit)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	samples, dropped := c.samples, min(s.open()-s.history(), to)-from // while the page was made
	leave()
	err = s.out.send(w, r, c, began)
	complete := err == nil && r.Context().Err() == nil
	x.sent(a, from, to, samples, complete)
	x.addLost(dropped)
	if next, ok := s.unix(to); ok && complete && s.log != nil && from < to {
		a.conn.afterResponse(r, func() { s.save(x, next) })
	}
}

// history returns how many seconds the Collector keeps.
func (s *Seconds) history() int64 { return int64(s.stats.History() / time.Second) }

// open returns the second that is open now, and seals nothing.
func (s *Seconds) open() int64 {
	line := s.stats.Timeline()
	return line.At(line.Now()).Index
}

// sealed seals all seconds that are over, and returns the one before which all can be sent. A page does so once.
func (s *Seconds) sealed() int64 {
	open := s.stats.Seal().Open
	for _, stream := range s.streams {
		open = stream.Sealed(open)
	}
	return open
}

// oldest returns the first second for a new scraper.
func (s *Seconds) oldest(open int64) int64 { return max(open-s.history(), s.oldestLogged) }

// limit bounds a response that begins with the second from. A client with a timeout below the default gets fewer samples.
func (s *Seconds) limit(r *http.Request, q *query, from int64, timeout time.Duration) seconds.Limit {
	var second seconds.Size
	for _, stream := range s.streams {
		second = second.Add(stream.Size(&q.Selection, from))
	}
	most := s.max
	if strings.HasPrefix(r.UserAgent(), "vm_promscrape") {
		most.Bytes = s.vmMaxBytes
	}
	most.Samples = max(int(float64(most.Samples)*min(timeout.Seconds()/defaultScrapeTimeout.Seconds(), 1)), 1)
	fit := most.Fit(second)
	if q.Histogram == seconds.Cumulative {
		fit--
	}
	return seconds.Limit{Seconds: max(fit, 1), Size: most}
}
