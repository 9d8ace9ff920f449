// Package live serves a web page that shows each second when it is sealed: calls admitted, blocked and failed,
// response times and calls in flight, for all inbound traffic and for every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//	go page.Run(ctx) // optional
//
// The page is embedded in the program and loads nothing from other hosts. Its only library is uPlot. The seconds arrive
// as server-sent events, which resume after an interruption. If a proxy withholds the events, the page polls.
//
// # Costs
//
// A viewer receives the total, one page of the table and the open resource, however many resources exist. The server
// sorts and searches. The first viewer of a second reads all resources for all viewers. Each sort order is computed
// once per second. Without viewers the page costs nothing, except for [Page.Run]: it measures the process once a
// second.
//
// # Trouble
//
// The page names the resources in trouble, the worst first: calls hang, traffic has stopped, or more calls than usual
// fail, are refused or are slow. One sentence in the header names the worst resource, its beginning, and the callers
// that wait for it. A healthy service has no trouble, also if some of its calls always fail. The rule compares the last
// ten seconds with ten-second windows of the last ten minutes. A resource is usual after thirty seconds; until then the
// page shows only resources of which half of the calls fail or are refused. The page does not know whether traffic has
// stopped in the first three minutes. Calls in flight without a context count with their average age.
//
// # The table
//
// The table shows the last second. If the page is paused, the table shows the second of the pause. If the charts are
// zoomed, it shows sums and averages of the seconds in the charts.
//
// A [Recording] is the same page as a single file, which contains the seconds of a metric log and needs no server.
//
// # Caveats
//
// Browsers allow six HTTP/1.1 connections to a host, and each tab holds one: the seventh tab waits.
//
// A viewer that does not read is disconnected. A host whose requests take more than a tenth of a processor waits. See
// docs/security.md for the other limits on clients.
//
// The seconds before the first viewer are read when a viewer's charts show them, initially three minutes. With 10,000
// resources the read takes a processor for some 200 ms, and other viewers receive their seconds in the meantime.
// Histograms of response times are kept for a minute, so older seconds have no p99; the page shows when the p99
// begins. The total counts inbound calls. In a service without inbound
// calls the page shows the background instead, all outermost calls; no other exporter has this total.
//
// Everyone who can open the page sees the names of all resources and origins. The page keeps the open resource and the
// search in the URL fragment, but sends them in the query of the stream, so they appear in the server's access log.
package live

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/internal/limiter"
)

// Defaults of [Options].
const (
	DefaultMaxViewers = 100
	DefaultMaxRows    = 50
)

// maxRows is the largest [Options.MaxRows]. The rows are encoded for each viewer, every second.
const maxRows = 250

// Options configure a [Page]. The zero value is sensible.
type Options struct {
	// Title is the page's title, "windowstat" if empty.
	Title string
	// MaxViewers is the maximum number of concurrent streams, [DefaultMaxViewers] if zero. A stream above the maximum
	// ends with an event named full. If another host has at least three streams, and at least two more than the host
	// of the new stream, the newest stream of the other host ends instead. A host is an address, or a network of 64
	// bits in IPv6.
	MaxViewers int
	// MaxRows is the number of resources on a page of the table, [DefaultMaxRows] if zero, and at most 250. A viewer
	// receives only these rows, so MaxRows limits the cost of a viewer.
	MaxRows int
}

// Page is an [http.Handler] that serves the live page under any path that ends in a slash. A viewer that does not read
// a message within ten seconds is disconnected; nothing else waits for it. Streams set a write deadline for each
// message, which replaces the server's WriteTimeout. They end when their http.Server shuts down, so they do not delay
// the shutdown. Create a Page with [New]. A Page is
// safe for concurrent use.
type Page struct {
	stats    *collector.Collector
	opts     Options
	feed     *feed
	compress func(http.HandlerFunc) http.HandlerFunc // adds compression for clients that accept it
	viewers  *limiter.Shares
	polls    *limiter.Shares
	budget   budget
	servers  sync.Map // *http.Server to the context.Context that ends when it shuts down
	closed   context.Context
	close    context.CancelFunc
}

//go:embed assets/*.html assets/*.js assets/*.css
var assets embed.FS

// defaults replaces zero values with defaults.
func (o *Options) defaults() {
	o.Title = cmp.Or(o.Title, "windowstat")
	o.MaxViewers, o.MaxRows = cmp.Or(o.MaxViewers, DefaultMaxViewers), cmp.Or(o.MaxRows, DefaultMaxRows)
}

// Check returns an error with a [collector.OptionError] for each invalid option.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	invalid := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "live", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if o.MaxViewers < 1 {
		invalid("MaxViewers", "%d; must be at least 1", o.MaxViewers)
	}
	if o.MaxRows < 1 || o.MaxRows > maxRows {
		invalid("MaxRows", "%d; must be 1 to %d", o.MaxRows, maxRows)
	}
	return errors.Join(errs...)
}

// New creates a Page for the statistics of c. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Page, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "live", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	o.defaults()
	p := &Page{
		stats: c, opts: o, feed: newFeed(c, o.MaxRows),
		viewers: limiter.NewShares(o.MaxViewers, limiter.EvictNewest),
		polls:   limiter.NewShares(o.MaxViewers, limiter.EvictOldest),
	}
	p.closed, p.close = context.WithCancel(context.Background())
	// Stateless compression keeps no window in memory for an open stream. The options are valid, so NewWrapper cannot
	// fail.
	zip, _ := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.StatelessCompression), gzhttp.EnableZstd(false))
	p.compress = func(h http.HandlerFunc) http.HandlerFunc { return zip(h) }
	return p, nil
}

// Run measures the process at the end of each second until ctx is canceled, so the charts of the process show the
// minutes before the first viewer. Package exporter calls Run. Without Run, the process is measured while the page has
// viewers. A measurement takes less than a millisecond. Run always returns nil.
func (p *Page) Run(ctx context.Context) error {
	line := p.stats.Timeline()
	for ctx.Err() == nil {
		p.feed.measureProcess()
		_, left := line.Current()
		background.Sleep(ctx, left+time.Millisecond)
	}
	return nil
}

// Close ends all streams and rejects new ones. Call it if the server is not an http.Server, or before
// http.Server.Close. The viewers then poll until a server responds again.
func (p *Page) Close() { p.close() }

// contentPolicy allows the page to load scripts, styles and data from its own server only.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	if !limiter.Begin(w, r, responseTimeout) {
		return
	}
	p.route(w, r)
}

// route selects a handler by the last element of the path, so the page can be mounted anywhere.
func (p *Page) route(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") {
		name = "index.html"
	}
	switch name {
	case "stream":
		p.serveStream(w, r)
	case "seconds":
		p.servePoll(w, r)
	default:
		p.compress(func(w http.ResponseWriter, r *http.Request) { p.serveAsset(w, r, name) }).ServeHTTP(w, r)
	}
}

// serveAsset serves a static file of the page.
func (p *Page) serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	body := asset(name)
	if body == "" {
		http.NotFound(w, r)
		return
	}
	if name == "index.html" {
		body = index(p.opts, "follow", keptSeconds, "")
	}
	kind := map[string]string{".html": "html", ".js": "javascript", ".css": "css"}[path.Ext(name)]
	w.Header().Set("Content-Type", "text/"+kind+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = io.WriteString(w, body)
}

// asset returns the content of a static file, or "" if no file has this name.
func asset(name string) string {
	body, _ := assets.ReadFile("assets/" + name)
	return string(body)
}

// index returns the HTML page. The script source, "follow" or "recorded", provides its seconds. The script keeps the
// last kept seconds. The HTML in above appears above the charts.
func index(o Options, source string, kept int, above string) string {
	return strings.NewReplacer(
		"{title}", html.EscapeString(o.Title), "{rows}", strconv.Itoa(o.MaxRows),
		"{source}", source, "{keep}", strconv.Itoa(kept), "{above}", above,
	).Replace(asset("index.html"))
}

const (
	// writeTimeout limits the write of one message of a stream.
	writeTimeout = 10 * time.Second
	// responseTimeout limits any other response.
	responseTimeout = 30 * time.Second
)
