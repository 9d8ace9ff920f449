package replay

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"net/http"
	"net/url"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// names names the lines of all logs as a proxy would, in the order in which they are read.
//
// Naming would be most of a replay's time. A name is made once for each method and path that comes again: known has those that came
// twice, and seen the last few that came once, so that a scanner's million paths fill neither: without seen, a log of nothing but these
// takes a quarter more processor time, and half as much memory again. Names are numbers everywhere else.
type names struct {
	named   func(*http.Request) string // nil if by method and path
	depth   int
	earned  *httpstat.Names       // nil if names need not be earned
	present int64                 // Unix time: no line of the future sets their clock
	latest  int64                 // Unix time of the latest line: their clock
	known   map[string]*knownName // by method, target without query, and where names may depend on it, host
	seen    [1 << 12][]byte       // those that came once
	seed    maphash.Seed
	once    knownName        // that is not remembered
	client  string           // of the last line
	ids     map[string]int32 // by name
	list    []string         // by id
	most    int              // beyond it, all other names are one
	key     []byte
}

// knownName is a plain name, and the name and id of its resource when it was called last.
type knownName struct {
	plain string
	memo  *httpstat.NameCache // nil if it is not remembered
	name  string
	id    int32
}

// The bounds of the caches.
const (
	maxTargets = 50_000
	maxNames   = 100_000
)

// newNames makes the names of a replay; the options say whether they are earned, and how many there may be.
func newNames(o *Options) (*names, error) {
	n := &names{named: o.Name, depth: o.PathDepth, known: map[string]*knownName{}, seed: maphash.MakeSeed(), ids: map[string]int32{}, most: o.MaxResources}
	if o.Names == nil {
		return n, nil
	}
	n.most = maxNames // of a long log: those in use at a time are bounded by how they are earned
	earn := *o.Names
	earn.MaxNames, earn.Now = o.MaxResources, func() time.Time { return time.Unix(n.latest, 0) }
	var err error
	n.earned, err = httpstat.NewNames(earn)
	return n, err
}

// id returns the id of the name of a line's resource, and whether that is not the line's own because it was not earned. It
// learns from the line's status.
func (n *names) id(rec *accesslog.Record) (id int32, unearned bool) {
	k := n.request(rec)
	name, standing := k.plain, httpstat.Given
	if n.earned != nil {
		if at := rec.Time.Unix(); at > n.latest && at <= n.present {
			n.latest = at
		}
		if string(rec.Client) != n.client { // those of one client often follow one another
			n.client = string(rec.Client)
		}
		name, standing = n.earned.Observe(k.plain, n.client, rec.Status, k.memo)
	}
	// As in the proxy: a stranger may call a service whatever he likes, and only what it answers has a name.
	if standing == httpstat.Unearned {
		name = httpstat.Unmatched
	}
	if k.name != name {
		k.name, k.id = name, n.number(name)
	}
	return k.id, standing == httpstat.Unearned
}

// request returns what is known of a request. It is remembered when it has come twice among few: most of the many that are made up
// never come again.
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
		if len(n.known) >= maxTargets {
			clear(n.known)
		}
		k = &knownName{memo: new(httpstat.NameCache)}
		n.known[string(n.key)] = k
	}
	*seen = append((*seen)[:0], n.key...)
	k.plain = n.plain(rec, target)
	return k
}

// plain is the name of a request before it is earned; malformed requests are Unmatched.
func (n *names) plain(rec *accesslog.Record, target []byte) string {
	if len(rec.Method) == 0 {
		return httpstat.Unmatched
	}
	if n.named != nil {
		u := parseTarget(string(target))
		return cmp.Or(n.named(&http.Request{Method: string(rec.Method), URL: u, Host: cmp.Or(u.Host, string(rec.Host))}), httpstat.Unmatched)
	}
	path := target
	if len(target) == 0 || target[0] != '/' || bytes.IndexByte(target, '%') >= 0 {
		path = []byte(parseTarget(string(target)).Path)
	}
	n.key = httpstat.AppendPathName(n.key[:0], rec.Method, path, n.depth)
	return string(n.key)
}

// number is the id of a name, as a Collector would have it.
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

// inbound is the resource of a name, whose calls come from outside.
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
