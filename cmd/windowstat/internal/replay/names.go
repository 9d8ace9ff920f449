package replay

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// names names the lines of all logs as a proxy would, in the order in which they are read.
type names struct {
	route  func(*http.Request) string
	depth  int
	earned *httpstat.Names   // nil if names need not be earned
	latest int64             // Unix time of the latest line: their clock
	known  map[string]string // plain names, by host, method and target
	ids    map[string]int32  // by name
	list   []string          // by id
	key    []byte
}

// The bounds of the caches. Beyond maxNames, all other names are one.
const (
	maxTargets = 50_000
	maxNames   = 100_000
)

func newNames(o *Options) (*names, error) {
	n := &names{route: o.Route, depth: o.PathDepth, known: map[string]string{}, ids: map[string]int32{}}
	if o.Names == nil {
		return n, nil
	}
	earn := *o.Names
	earn.MaxNames, earn.Now = o.MaxResources, func() time.Time { return time.Unix(n.latest, 0) }
	var err error
	n.earned, err = httpstat.NewNames(earn)
	return n, err
}

// id returns the id of the name of a line's resource, and whether that is not the line's own because it was not earned. It
// learns from the line's status.
func (n *names) id(rec *accesslog.Record) (id int32, unearned bool) {
	plain := n.plain(rec)
	if n.earned == nil {
		return n.number(plain), false
	}
	if at := rec.Time.Unix(); at > n.latest && at <= time.Now().Unix() {
		n.latest = at
	}
	client := string(rec.Client)
	name, standing := n.earned.Name(plain, client)
	n.earned.Learn(plain, client, rec.Status)
	if standing == httpstat.Unearned {
		return n.number(httpstat.Unmatched), true
	}
	return n.number(name), false
}

// plain is the name of a request before it is earned; malformed requests are Unmatched.
func (n *names) plain(rec *accesslog.Record) string {
	if len(rec.Method) == 0 {
		return httpstat.Unmatched
	}
	target := rec.Target
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		target = target[:i]
	}
	n.key = append(append(n.key[:0], rec.Method...), ' ')
	n.key = append(n.key, target...)
	if n.route != nil {
		n.key = append(append(n.key, ' '), rec.Host...)
	}
	if name, ok := n.known[string(n.key)]; ok {
		return name
	}
	u := parseTarget(string(target))
	name := ""
	if n.route != nil {
		name = n.route(&http.Request{Method: string(rec.Method), URL: u, Host: cmp.Or(u.Host, string(rec.Host))})
	}
	if name == "" && n.depth > 0 {
		name = httpstat.Method(string(rec.Method)) + " " + httpstat.CollapsePath(u.Path, n.depth)
	}
	name = cmp.Or(name, httpstat.Unmatched)
	if len(n.known) >= maxTargets {
		clear(n.known)
	}
	n.known[string(n.key)] = name
	return name
}

// number is the id of a name.
func (n *names) number(name string) int32 {
	id, ok := n.ids[name]
	if !ok && len(n.list) >= maxNames {
		name = collector.Other
		id, ok = n.ids[name]
	}
	if !ok {
		id = int32(len(n.list))
		n.ids[name] = id
		n.list = append(n.list, name)
	}
	return id
}

// parseTarget parses a request target as net/http does; a target that net/http refuses is a path.
func parseTarget(target string) *url.URL {
	if u, err := url.ParseRequestURI(target); err == nil {
		return u
	}
	if path, err := url.PathUnescape(target); err == nil {
		return &url.URL{Path: path}
	}
	return &url.URL{Path: target}
}
