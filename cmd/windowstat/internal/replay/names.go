package replay

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// names caches the resource of each request, which httpstat.PathName names.
type names struct {
	name  func(*http.Request) string
	known map[string]int32 // by method and target
	ids   map[string]int32 // by name
	list  []string
	key   []byte
}

// The bounds of the caches. Beyond maxNames, all other names are one.
const (
	maxTargets = 50_000
	maxNames   = 100_000
)

func newNames(depth int) *names {
	return &names{name: httpstat.PathName(depth), known: map[string]int32{}, ids: map[string]int32{}}
}

// id returns the id of a request's resource name; malformed requests are Unmatched.
func (n *names) id(method, target []byte) int32 {
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		target = target[:i]
	}
	n.key = append(append(append(n.key[:0], method...), ' '), target...)
	if id, ok := n.known[string(n.key)]; ok {
		return id
	}
	name := httpstat.Unmatched
	if len(method) > 0 {
		name = n.name(&http.Request{Method: string(method), URL: parseTarget(string(target))})
	}
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
	if len(n.known) >= maxTargets {
		clear(n.known)
	}
	n.known[string(n.key)] = id
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
