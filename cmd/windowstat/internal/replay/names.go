package replay

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// names finds the resource of a request, as httpstat.PathName does, and remembers what it found.
type names struct {
	name  func(*http.Request) string
	known map[string]int32 // by method and target
	ids   map[string]int32 // by name
	list  []string
	key   []byte
}

// What is remembered is bounded: targets, and names, beyond which all others are one.
const (
	mostTargets = 50_000
	mostNames   = 100_000
)

func newNames(depth int) *names {
	return &names{name: httpstat.PathName(depth), known: map[string]int32{}, ids: map[string]int32{}}
}

// of is the number of the name of a request's resource. A request that is none has that of requests that match no route.
func (n *names) of(method, target []byte) int32 {
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
	if !ok && len(n.list) >= mostNames {
		name = collector.Other
		id, ok = n.ids[name]
	}
	if !ok {
		id = int32(len(n.list))
		n.ids[name] = id
		n.list = append(n.list, name)
	}
	if len(n.known) >= mostTargets {
		clear(n.known)
	}
	n.known[string(n.key)] = id
	return id
}

// parseTarget reads the target of a request as net/http does; what it would refuse is a path all the same.
func parseTarget(target string) *url.URL {
	if u, err := url.ParseRequestURI(target); err == nil {
		return u
	}
	if path, err := url.PathUnescape(target); err == nil {
		return &url.URL{Path: path}
	}
	return &url.URL{Path: target}
}
