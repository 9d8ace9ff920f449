// Package live serves a web page that shows every second when it is sealed: calls admitted, blocked and failed, response times
// and calls in flight, of all inbound traffic and of every resource.
//
//	page, err := live.New(c, live.Options{})
//	mux.Handle("/live/", page)
//
// The page is embedded and loads nothing from other hosts; its only library is uPlot. Numbers arrive by server-sent events,
// which resume after an interruption, or by polling where a proxy holds events back. A viewer is sent the total, a page of the
// table and the resource that is open, however many others there are; the server sorts and searches. Each second of all resources
// is read once, by the first viewer who asks for it, and sorted once for each column; without viewers the page costs nothing.
//
// The table is of the last second, or of the seconds to which the charts are zoomed, or of the one at which the page is paused:
// then it has sums, and averages of that range.
//
// A [Recording] is the same page as one file, with the seconds of a metric log in it and no server.
//
// # Caveats
//
// Browsers allow six HTTP/1.1 connections to a host, and each tab keeps one: the seventh tab waits.
//
// A viewer that does not read is disconnected. A host whose questions take more than a tenth of a processor waits. See
// docs/security.md for what else a client cannot hold.
//
// The seconds before the first viewer came are read when somebody's charts show them, at first three minutes: with 10,000 resources
// that takes a processor for some 200 ms, and others have their seconds meanwhile. Response times of single calls are kept for a minute, so
// there is no p99 before, and the page says from when on it is known. The p99 that is usual for a resource is taken to be the
// median of the slowest call of a second, of ten seconds in each of the last ten minutes. The total is of inbound calls; in a
// service without any it is called background, all outermost calls, which other ways out have not.
//
// Everyone who can open the page sees the names of all resources and origins. The page's address has what is open and searched,
// behind the #; the server's access log gets the same with the address of the stream.
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
	"github.com/windowstat/windowstat/exporter/internal/limiter"
)

// Defaults of [Options].
const (
	DefaultMaxViewers = 100
	DefaultMaxRows    = 50
)

// maxRows is the most of [Options.MaxRows]: they are encoded for each viewer in each second.
const maxRows = 250

// Options configure a [Page]. The zero value is sensible.
type Options struct {
	// Title is the page's title, "windowstat" if empty.
	Title string
	// MaxViewers is the most concurrent streams, [DefaultMaxViewers] if zero. A further one ends with an event named full. If its host
	// has fewer than another one, the newest of that other host ends so in its place, but two are left to every host. A host is an
	// address, of IPv6 a network of 64 bits.
	MaxViewers int
	// MaxRows is how many resources are on a page of the table, [DefaultMaxRows] if zero, and at most 250. A viewer is sent
	// those only, so it bounds what a second of a viewer costs.
	MaxRows int
}

// Page serves the page below any path that ends in a slash. A viewer that does not read a message within ten seconds is
// disconnected, and nobody waits for it. Streams have a deadline for each message in the place of the server's WriteTimeout. They end
// when their http.Server is shut down, so they do not delay the shutdown. It must be made with [New], and is safe for concurrent use.
type Page struct {
	stats   *collector.Collector
	opts    Options
	feed    *feed
	zipped  http.Handler // what the page answers, compressed if the client accepts that
	viewers *limiter.Shares
	polls   *limiter.Shares
	budget  budget
	servers sync.Map // *http.Server to a context.Context, which ends when it shuts down
	closed  context.Context
	close   context.CancelFunc
}

//go:embed assets/*.html assets/*.js assets/*.css
var assets embed.FS

// defaults fills in what is left out.
func (o *Options) defaults() {
	o.Title = cmp.Or(o.Title, "windowstat")
	o.MaxViewers, o.MaxRows = cmp.Or(o.MaxViewers, DefaultMaxViewers), cmp.Or(o.MaxRows, DefaultMaxRows)
}

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "live", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if o.MaxViewers < 1 {
		wrong("MaxViewers", "%d; at least 1 is needed", o.MaxViewers)
	}
	if o.MaxRows < 1 || o.MaxRows > maxRows {
		wrong("MaxRows", "%d; 1 to %d are allowed", o.MaxRows, maxRows)
	}
	return errors.Join(errs...)
}

// New makes the page. The error names every invalid option.
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
		viewers: limiter.NewShares(o.MaxViewers, limiter.EvictNewest), polls: limiter.NewShares(o.MaxViewers, limiter.EvictOldest),
	}
	p.closed, p.close = context.WithCancel(context.Background())
	// The options are right. A stream keeps no window.
	zip, _ := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.StatelessCompression), gzhttp.EnableZstd(false))
	p.zipped = zip(http.HandlerFunc(p.answer))
	return p, nil
}

// Close ends all streams and rejects new ones. It is needed for servers other than http.Server, and for http.Server.Close.
// Viewers then poll until the server comes back.
func (p *Page) Close() { p.close() }

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
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
	p.zipped.ServeHTTP(w, r)
}

// answer serves a part by the last element of its path, wherever the page is mounted.
func (p *Page) answer(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") {
		name = "index.html"
	}
	switch name {
	case "stream":
		p.stream(w, r)
	case "seconds":
		p.poll(w, r)
	default:
		p.file(w, r, name)
	}
}

// file serves a static part of the page.
func (p *Page) file(w http.ResponseWriter, r *http.Request, name string) {
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

// asset returns a part of the page, empty if there is none of this name.
func asset(name string) string {
	body, _ := assets.ReadFile("assets/" + name)
	return string(body)
}

// index returns the page that gets its seconds from a script, follow or recorded, and keeps so many. Above the charts stands some HTML.
func index(o Options, source string, kept int, above string) string {
	return strings.NewReplacer(
		"{title}", html.EscapeString(o.Title), "{rows}", strconv.Itoa(o.MaxRows), "{source}", source, "{keep}", strconv.Itoa(kept), "{above}", above,
	).Replace(asset("index.html"))
}

const (
	// writeTimeout limits one message of a stream, responseTimeout any other response.
	writeTimeout    = 10 * time.Second
	responseTimeout = 30 * time.Second
)
