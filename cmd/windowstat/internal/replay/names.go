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

// names assigns names to the lines of all logs, in the order of the replay, as a proxy assigns names to requests:
//
//	line       GET /users/17?x=1 200, from 192.0.2.1
//	request    GET /users/17          method and target without query, and the host if routes may depend on it
//	plain      GET /users/:id         from the routes, or from the path
//	earned     GET /users/:id         after a request of this name has succeeded; until then Unmatched
//	number     4                      index in list; every item and call has the number instead of the name
//
// Naming would take most of the time of a replay, so known caches the plain name of requests. A request enters known
// when it occurs a second time; seen holds recent requests for that decision. A scanner's million paths therefore do
// not fill the cache. Without seen, a log of such paths would take a quarter more processor time and half as much
// memory again.
type names struct {
	named   func(*http.Request) string // nil if method and path name a request
	depth   int
	earned  *httpstat.Names            // decides which names are earned; nil if every name is used
	present int64                      // current Unix time; lines from the future do not advance latest
	latest  int64                      // Unix time of the latest line; the clock of earned
	known   timeline.Known[*knownName] // requests that occurred at least twice
	seen    [1 << 12][]byte            // the last request of each hash
	seed    maphash.Seed
	once    knownName        // reused for requests that are not cached
	client  string           // client of the last line
	ids     map[string]int32 // by name
	list    []string         // names by number
	most    int              // maximum length of list; further names share collector.Other
	key     []byte
}

// knownName is the plain name of a request, with the resource of its last call.
type knownName struct {
	plain string
	memo  *httpstat.NameCache // speeds up Observe; nil if the request is not cached
	name  string              // resource of the last call
	id    int32               // its number
}

// maxNames is the maximum number of names in a replay whose names are earned.
const maxNames = 100_000

// newNames returns the names of a replay with these options.
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
	n.most = maxNames // earned limits the names in use at one time; a long log has more over time
	earn := *o.Names
	earn.MaxNames, earn.Now = o.MaxResources, func() time.Time { return time.Unix(n.latest, 0) }
	var err error
	n.earned, err = httpstat.NewNames(earn)
	return n, err
}

// id returns the number of the resource of a line, and whether the line counts for another resource because its name is
// not earned. A line with a successful status earns the name.
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
	// As in the proxy, only a successful request creates a name.
	if standing == httpstat.Unearned {
		name = httpstat.Unmatched
	}
	if k.name != name {
		k.name, k.id = name, n.number(name)
	}
	return k.id, standing == httpstat.Unearned
}

// resultStatus returns the status of an HTTP call with the same result. The HTTP status of a gRPC call is 200 even if
// the call failed. A method that does not exist is not found, so it earns no name.
func resultStatus(rec *accesslog.Record) int {
	switch {
	case !rec.HasGRPC || rec.GRPC == 0:
		return rec.Status
	case isServerFault(rec.GRPC) && collector.GRPCCode(rec.GRPC) != collector.GRPCCode(unimplemented):
		return http.StatusInternalServerError
	}
	return http.StatusNotFound
}

// unimplemented is the gRPC status of a method that the server does not have.
const unimplemented = 12

// request returns the cached name of a request, or names the request. A request that occurs twice within the last few
// requests enters the cache.
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

// plain returns the name of a request before it is earned. It returns Unmatched for a malformed request.
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

// number returns the number of a name. It cleans and limits names as a Collector does.
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

// inbound returns the resource of a name, and the options of its calls: they are inbound.
func (n *names) inbound(name int32) (string, []collector.CallOption) { return n.list[name], inbound }

var inbound = []collector.CallOption{collector.Inbound()}

// parseTarget parses a request target as net/http does. A target that net/http refuses becomes a path.
func parseTarget(target string) *url.URL {
	if u, err := url.ParseRequestURI(target); err == nil {
		return u
	}
	if path, err := url.PathUnescape(target); err == nil {
		return &url.URL{Path: path}
	}
	return &url.URL{Path: target}
}
