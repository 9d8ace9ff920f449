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

// names names the lines of one log, or of all that are followed, and caches what it can.
type names struct {
	run   *run
	known map[string]knownName // by host, method and target
	ids   map[string]int32     // by name
	list  []string
	sent  int // how many of the list earlier batches had
	key   []byte
}

// knownName is what is known of a request.
type knownName struct {
	plain    string // before it is earned
	id       int32  // of the resource's name, if that is settled
	unearned bool
}

// The bounds of the caches. Beyond maxNames, all other names are one.
const (
	maxTargets = 50_000
	maxNames   = 100_000
)

func (r *run) newNames() *names {
	return &names{run: r, known: map[string]knownName{}, ids: map[string]int32{}}
}

// request finds what is known of the request of a line; malformed requests are Unmatched.
func (n *names) request(rec *accesslog.Record) knownName {
	target := rec.Target
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		target = target[:i]
	}
	n.key = append(append(append(n.key[:0], rec.Host...), ' '), rec.Method...)
	n.key = append(append(n.key, ' '), target...)
	if x, ok := n.known[string(n.key)]; ok {
		return x
	}
	x := knownName{plain: httpstat.Unmatched}
	if len(rec.Method) > 0 {
		u := parseTarget(string(target))
		x.plain = cmp.Or(n.run.Name(&http.Request{Method: string(rec.Method), URL: u, Host: cmp.Or(u.Host, string(rec.Host))}), httpstat.Unmatched)
	}
	switch {
	case n.run.earned == nil:
		x.id = n.number(x.plain)
	case n.run.settled:
		x.id, x.unearned = n.count(n.run.earned.Name(x.plain, ""))
	}
	if len(n.known) >= maxTargets {
		clear(n.known)
	}
	n.known[string(n.key)] = x
	return x
}

// id returns the id of the name of a line's resource, and whether that is not the line's own because it was not earned. It
// learns from the line's status, unless the names are settled.
func (n *names) id(rec *accesslog.Record) (id int32, unearned bool) {
	x := n.request(rec)
	if n.run.earned == nil || n.run.settled {
		return x.id, x.unearned
	}
	if at := rec.Time.Unix(); at > n.run.latest && at <= time.Now().Unix() {
		n.run.latest = at
	}
	client := string(rec.Client)
	id, unearned = n.count(n.run.earned.Name(x.plain, client))
	n.run.earned.Learn(x.plain, client, rec.Status)
	return id, unearned
}

// count is the id of the name that a call counts for.
func (n *names) count(name string, s httpstat.Standing) (id int32, unearned bool) {
	if s == httpstat.Unearned {
		return n.number(httpstat.Unmatched), true
	}
	return n.number(name), false
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
