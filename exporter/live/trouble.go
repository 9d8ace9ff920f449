package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/trouble"
)

// troubleStep is the distance between the seconds of a selected range at which the rows are checked for trouble.
const troubleStep = 5

// maxOldest limits the searches for the oldest call of a resource, for one snapshot. A search reads all calls in
// flight. The other resources have the average age of their calls instead.
const maxOldest = 50

// alarm is the trouble of the service in a message.
type alarm struct {
	// Before and After are the parts of a sentence about the worst resource. The time Since belongs between them.
	Before string     `json:"before"`
	After  string     `json:"after"`
	Since  int64      `json:"since"` // Unix time
	List   []troubled `json:"list"`  // the worst first
}

// troubled is a resource in trouble.
type troubled struct {
	Resource string `json:"resource"`
	Words    string `json:"words"`
	Since    int64  `json:"since"` // Unix time
}

// maxTroubled is the number of resources in a message.
const maxTroubled = 50

// find finds the trouble of a row. The seconds of the snapshot must be in r.list. For the last second, it is the
// current trouble; for a range, the worst of all seconds that are checked.
func (r *rowReader) find(s *snapshot, x *row) {
	u := x.usualNumbers()
	r.seconds = appendSeconds(r.seconds[:0], r.list)
	n := len(r.seconds)
	if s.from == s.to-1 {
		c := trouble.Current{Seconds: r.seconds[max(0, n-trouble.Window):]}
		if n > 0 {
			c.InFlight = r.seconds[n-1].InFlight
		}
		c.Oldest = r.oldest(x, c.InFlight)
		x.troubles = trouble.Find(u, c)
		x.troubled.Store(len(x.troubles) > 0)
		return
	}
	for end := n; end > 0; end -= troubleStep {
		c := trouble.Current{Seconds: r.seconds[max(0, end-trouble.Window):end], InFlight: r.seconds[end-1].InFlight}
		found := trouble.Find(u, c)
		if len(found) > 0 && (len(x.troubles) == 0 || trouble.Compare(found[0], x.troubles[0]) < 0) {
			x.troubles = found
		}
	}
}

// oldest returns the age of the oldest call in flight of a resource, or 0 if all are too young to matter.
func (r *rowReader) oldest(x *row, inFlight int64) time.Duration {
	if inFlight == 0 {
		return 0
	}
	now := x.View().Snapshot(nil)
	ages := time.Duration(now.InFlightElapsed * float64(time.Second))
	if now.InFlight == 0 || ages < trouble.OldAge {
		return 0
	}
	age := ages / time.Duration(now.InFlight)
	if r.searched++; r.searched <= maxOldest {
		if list := x.Oldest(1); len(list) > 0 {
			age = max(age, list[0].Age)
		}
	}
	return age
}

// rank sorts the resources in trouble, and gives each of their rows a rank: a higher one is worse. Rows without trouble
// have the rank 0.
func (s *snapshot) rank(f *feed) {
	rows := map[string]*row{}
	for i := range s.rows {
		if x := &s.rows[i]; len(x.troubles) > 0 {
			rows[x.Name()] = x
		}
	}
	if len(rows) == 0 {
		return
	}
	callers := map[string][]string{}
	if s.from == s.to-1 {
		left := maxNodes
		findCallers(callers, rows, f.stats.Tree(), nil, &left)
	}
	list := make([]trouble.Resource, 0, len(rows))
	for name, x := range rows {
		list = append(list, trouble.Resource{Name: name, Troubles: x.troubles, Callers: callers[name]})
	}
	trouble.Rank(list)
	for i := range list {
		rows[list[i].Name].rank = int64(len(list) - i)
	}
	if s.from != s.to-1 {
		return
	}
	list = list[:min(len(list), maxTroubled)]
	for i := range list {
		x := rows[list[i].Name]
		list[i].Since = time.Unix(s.since(x), 0)
		s.alarm.List = append(s.alarm.List, troubled{x.Name(), trouble.Words(x.troubles), list[i].Since.Unix()})
	}
	if worst := rows[list[0].Name]; worst.troubles[0].Kind == trouble.Refusing {
		list[0].Limits = limitsOf(worst.Resource)
	}
	s.alarm.Before, s.alarm.After = trouble.Sentence(list)
	s.alarm.Since = s.alarm.List[0].Since
}

// limitsOf describes the limits of a resource that cover all of its calls, such as "37 calls per second". It returns ""
// without such limits.
func limitsOf(r *collector.Resource) string {
	var words []string
	if n, ok := r.Limit(collector.QPS); ok {
		words = append(words, fmt.Sprint(n, " calls per second"))
	}
	if n, ok := r.Limit(collector.Concurrency); ok {
		words = append(words, fmt.Sprint(n, " calls in flight"))
	}
	return strings.Join(words, " and ")
}

// since returns the Unix time when the worst trouble of a row began.
func (s *snapshot) since(x *row) int64 {
	list := appendSeconds(nil, x.View().Node().AppendSeconds(nil, s.to-keptSeconds, s.to))
	return s.end - int64(x.troubles[0].Since(x.usualNumbers(), list))
}

// findCallers adds the callers of the given resources below a node of the call tree: all resources on a path to them.
// The first element of a path is an entrance, which is no resource. left limits the number of nodes of the search.
func findCallers(
	callers map[string][]string, rows map[string]*row, node *collector.TreeNode, path []string, left *int,
) {
	for _, child := range node.Children() {
		name := child.Name()
		if *left--; *left < 0 || len(path) >= maxDepth || slices.Contains(path, name) {
			continue
		}
		if rows[name] != nil && len(path) > 1 {
			for _, caller := range path[1:] {
				if !slices.Contains(callers[name], caller) {
					callers[name] = append(callers[name], caller)
				}
			}
		}
		findCallers(callers, rows, child, append(slices.Clip(path), name), left)
	}
}
