package replay

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"net/http"
	"net/url"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// names names the lines of all logs as a proxy names requests, in the order in which they are replayed.
//
// Naming would take most of the time of a replay, so the name of a method and path is cached. Only requests that repeat
// are cached: known has the requests that occurred twice, and seen the last ones that occurred once. A scanner's
// million paths therefore fill neither. Without seen, a log of such paths would take a quarter more processor time, and
// half as much memory again. Everything else refers to names by number.
type names struct {
	named   func(*http.Request) string // nil if method and path name a request
	depth   int
	earned  *httpstat.Names            // nil if names are not earned
	present int64                      // current Unix time; later lines do not advance the clock of earned
	latest  int64                      // Unix time of the latest line: the clock of earned
	known   timeline.Known[*knownName] // by method, target without query, and where names may depend on it, host
	seen    [1 << 12][]byte            // requests that occurred once
	seed    maphash.Seed
	once    knownName        // of a request that is not cached
	client  string           // client of the last line
	ids     map[string]int32 // by name
	list    []string         // by number
	most    int              // maximum number of names; further names share one
	key     []byte
}

// knownName is a plain name, with the name and the number of the resource of its last call.
type knownName struct {
	plain string
	memo  *httpstat.NameCache // nil if it is not cached
	name  string
	id    int32
}

// maxNames bounds the names of a replay whose names are earned.
const maxNames = 100_000

// newNames returns the names of a replay. The options decide whether names are earned, and how many there may be.
func newNames(o *Options) (*names, error) {
	n := &names{
		named: o.Name,
		depth: o.PathDepth,
		known: timeline.Known[*knownName]{},
		seed:  maphash.MakeSeed(),
		ids:   map[string]int32{},
		most:  o.MaxResources,
	}
	if o.Names == nil {
		return n, nil
	}
	n.most = maxNames // earned bounds the names in use at a time; a long log has more
	earn := *o.Names
	earn.MaxNames, earn.Now = o.MaxResources, func() time.Time { return time.Unix(n.latest, 0) }
	var err error
	n.earned, err = httpstat.NewNames(earn)
	return n, err
}

// id returns the number of the resource of a line. unearned reports that the line counts for another resource, because
// its name was not earned. id learns from the status of the line.
func (n *names) id(rec *accesslog.Record) (id int32, unearned bool) {
	k := n.request(rec)
	name, standing := k.plain, httpstat.Given
	if n.earned != nil {
		if at := rec.Time.Unix(); at > n.latest && at <= n.present {
			n.latest = at
		}
		if string(rec.Client) != n.client { // consecutive lines often have the same client
			n.client = string(rec.Client)
		}
		name, standing = n.earned.Observe(k.plain, n.client, resultStatus(rec), k.memo)
	}
	// As in the proxy, a request does not create a name unless it succeeds.
	if standing == httpstat.Unearned {
		name = httpstat.Unmatched
	}
	if k.name != name {
		k.name, k.id = name, n.number(name)
	}
	return k.id, standing == httpstat.Unearned
}

// resultStatus returns the HTTP status that corresponds to the result of a line. A gRPC call that failed has status
// 200.
func resultStatus(rec *accesslog.Record) int {
	switch {
	case !rec.HasGRPC || rec.GRPC == 0:
		return rec.Status
	case isServerFault(rec.GRPC) && collector.GRPCCode(rec.GRPC) != collector.GRPCCode(unimplemented):
		return http.StatusInternalServerError
	}
	return http.StatusNotFound // a method that does not exist is unimplemented
}

// unimplemented is the gRPC status of a method that the server does not have.
const unimplemented = 12

// request returns the name of a request. A request that occurs twice within the last few requests is cached; most
// made-up ones occur once.
func (n *names) request(rec *accesslog.Record) *knownName {
	target, _, _ := bytes.Cut(rec.Target, []byte("?"))
	n.key = append(append(append(n.key[:0], rec.Method...), ' '), target...)
	if n.named != nil {
		n.key = append(append(n.key, ' '), rec.Host...)
	}
	if k := n.known[string(n.key)]; k != nil {
		return k
	}
	k := &n.once
	*k = knownName{}
	seen := &n.seen[maphash.Bytes(n.seed, n.key)%uint64(len(n.seen))]
	if string(*seen) == string(n.key) {
		k = &knownName{memo: new(httpstat.NameCache)}
		n.known.Add(n.key, k)
	}
	*seen = append((*seen)[:0], n.key...)
	k.plain = n.plain(rec, target)
	return k
}

// plain returns the name of a request before it is earned. A malformed request is Unmatched.
func (n *names) plain(rec *accesslog.Record, target []byte) string {
	if len(rec.Method) == 0 {
		return httpstat.Unmatched
	}
	if n.named != nil {
		u := parseTarget(string(target))
		return cmp.Or(
			n.named(&http.Request{Method: string(rec.Method), URL: u, Host: cmp.Or(u.Host, string(rec.Host))}),
			httpstat.Unmatched,
		)
	}
	path := target
	if len(target) == 0 || target[0] != '/' || bytes.IndexByte(target, '%') >= 0 {
		path = []byte(parseTarget(string(target)).Path)
	}
	n.key = httpstat.AppendPathName(n.key[:0], rec.Method, path, n.depth)
	return string(n.key)
}

// number returns the number of a name, as cleaned and bounded by a Collector.
func (n *names) number(name string) int32 {
	id, ok := n.ids[name]
	if ok {
		return id
	}
	if name = collector.CleanName(name); len(n.list) >= n.most {
		name = collector.Other
	}
	if id, ok = n.ids[name]; !ok {
		id = int32(len(n.list))
		n.ids[name] = id
		n.list = append(n.list, name)
	}
	return id
}

// inbound returns the resource of a name, and the options of its calls, which come from outside.
func (n *names) inbound(name int32) (string, []collector.CallOption) { return n.list[name], inbound }

var inbound = []collector.CallOption{collector.Inbound()}

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
