package httpstat_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// clock is a clock whose time the tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newNames(t testing.TB, o httpstat.NamesOptions) (*httpstat.Names, *clock) {
	t.Helper()
	c := &clock{time.Unix(1_700_000_000, 0)}
	o.Now = c.now
	n, err := httpstat.NewNames(o)
	if err != nil {
		t.Fatal(err)
	}
	return n, c
}

// call calls Name and Learn for one request with the given status. It returns the name of the request and the
// NameStatus of this name. Name has returned both, before Learn records the status.
func call(n *httpstat.Names, plain, host string, status int) string {
	name, s := n.Name(plain, host)
	n.Learn(plain, host, status)
	return name + " " + s.String()
}

// Gateways respond to any path with 301, 302, 401, 403, 404, 405 or 5xx. Only success comes from the service itself,
// and earns a name.
func TestNamesAreEarnedBySuccess(t *testing.T) {
	n, _ := newNames(t, httpstat.NamesOptions{Given: []string{"GET /users/{id}"}, MaxValues: 1000})
	for status := range 600 {
		plain := fmt.Sprint("GET /api/:id/", status)
		want := httpstat.Unearned
		if got := call(n, plain, "", status); got != plain+" unearned" {
			t.Errorf("%d: first %s", status, got)
		}
		if status >= 200 && status < 300 || status == 101 || status == 304 {
			want = httpstat.Earned
		}
		if _, s := n.Name(plain, ""); s != want {
			t.Errorf("%d: then %v, want %v", status, s, want)
		}
	}
	for _, name := range []string{"GET /users/{id}", httpstat.Unmatched} {
		if got := call(n, name, "", 404); got != name+" given" {
			t.Error(got)
		}
	}
}

// oracle is a simple model of Names: all counts are exact, and the number of paths and names is not bounded.
type oracle struct {
	most   int
	places map[string]map[string]int // calls of tracked values, by the path before the value, and by the value
	missed map[string]int            // calls of values that are not tracked, by the path with the value
	order  map[string]int
	earned map[string]bool
}

func (o *oracle) name(plain string, learn bool) string {
	segments := strings.Split(plain, "/")
	head := segments[0]
	at := ""
	for _, v := range segments[1:] {
		kept := o.places[at]
		if kept == nil {
			kept = map[string]int{}
			o.places[at] = kept
		}
		key := at + "/" + v
		_, known := kept[v]
		switch {
		case v == ":id" || v == "*":
		case known || len(kept) < o.most:
			if learn {
				if kept[v]++; !known {
					o.order[key] = len(o.order)
				}
			}
		case !learn:
			v = "*"
		default:
			o.missed[key]++
			least := ""
			for x := range kept {
				if least == "" || kept[x] < kept[least] ||
					kept[x] == kept[least] && o.order[at+"/"+x] > o.order[at+"/"+least] {
					least = x
				}
			}
			if o.missed[key] < 2*kept[least]+4 {
				v = "*"
				break
			}
			for place := range o.places {
				if place == at+"/"+least || strings.HasPrefix(place, at+"/"+least+"/") {
					delete(o.places, place)
				}
			}
			delete(kept, least)
			kept[v] = o.missed[key]
			o.order[key] = len(o.order) + 1_000_000
		}
		at += "/" + v
	}
	return head + at
}

// Decisions depend only on the calls, and equal the decisions of the oracle. No position of a path has more values with
// their own names than MaxValues.
func TestNamesOracle(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		most := 1 + r.IntN(6)
		o := oracle{most, map[string]map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}}
		n, _ := newNames(t, httpstat.NamesOptions{MaxNames: 1_000_000, MaxValues: most})
		again, _ := newNames(t, httpstat.NamesOptions{MaxNames: 1_000_000, MaxValues: most})
		found := map[string]*httpstat.NameCache{}
		for i := range 3000 {
			var b strings.Builder
			b.WriteString([]string{"GET ", "POST "}[r.IntN(2)])
			for range 1 + r.IntN(3) {
				switch v := int(r.ExpFloat64() * 6); {
				case v == 3:
					b.WriteString("/:id")
				case r.IntN(5) == 0:
					fmt.Fprintf(&b, "/x%d", i)
				default:
					fmt.Fprintf(&b, "/v%d", v)
				}
			}
			plain, status := b.String(), []int{200, 200, 304, 404}[r.IntN(4)]
			want := o.name(plain, false)
			want += map[bool]string{true: " earned", false: " unearned"}[o.earned[want]]
			got := call(n, plain, "", status)
			name, s := again.Observe(plain, "", status, found[plain]) // must equal the result of call
			if found[plain] == nil && r.IntN(2) == 0 {
				found[plain] = new(httpstat.NameCache)
			}
			if got != want || name+" "+s.String() != got {
				t.Fatalf("seed %d, call %d of %s: got %q, want %q", seed, i, plain, got, want)
			}
			if status < 400 {
				o.earned[o.name(plain, true)] = true
			}
		}
	}
}

// Observe returns the same names as Name followed by Learn, with and without a cache. During the test, names become
// idle and are evicted, hosts appear and disappear, and all counts are halved, so many caches become invalid.
func TestCombinedCallEqualsNameAndLearn(t *testing.T) {
	for seed, values := range []int{2, 10, 100} {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		o := httpstat.NamesOptions{MaxNames: 20, MaxValues: values, Given: []string{"GET /1/1/1"}}
		want, clock := newNames(t, o)
		got, clock2 := newNames(t, o)
		found := map[string]*httpstat.NameCache{}
		wide := 2 + r.ExpFloat64()*100
		for i := range 100_000 {
			if r.IntN(1000) == 0 { // continue with other paths and a later time, so that some names become idle
				clock.at = clock.at.Add(time.Duration(r.IntN(int(collector.DefaultHistory))))
				clock2.at = clock.at
				wide = 2 + r.ExpFloat64()*float64(r.IntN(1000))
			}
			plain := fmt.Sprintf(
				"%s /%d/%d/%d",
				[]string{"GET", "POST", "PUT"}[r.IntN(3)],
				int(r.ExpFloat64()*wide),
				int(r.ExpFloat64()*5),
				int(r.ExpFloat64()*3),
			)
			host, status := fmt.Sprintf("10.0.0.%d", r.IntN(9)), []int{200, 200, 404}[r.IntN(3)]
			if found[plain] == nil && r.IntN(9) > 0 {
				found[plain] = new(httpstat.NameCache)
			}
			w := call(want, plain, host, status)
			name, s := got.Observe(plain, host, status, found[plain])
			if g := name + " " + s.String(); g != w {
				t.Fatalf("seed %d, call %d of %s: got %q, want %q", seed, i, plain, g, w)
			}
		}
		if g, w := saved(t, got), saved(t, want); g != w {
			t.Errorf("seed %d: got %s, want %s", seed, g, w)
		}
	}
}

// An evicted name must be earned again, although the path tree still has its path.
func TestEvictedNamesAreEarnedAgain(t *testing.T) {
	n, c := newNames(t, httpstat.NamesOptions{MaxNames: 1})
	var found httpstat.NameCache
	for range 3 {
		n.Observe("GET /a", "", 200, &found)
	}
	for _, method := range []string{
		"POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT",
		"OTHER", "X",
	} {
		c.at = c.at.Add(collector.DefaultHistory + 2*time.Minute)
		n.Learn(method+" /a", "", 200)
	}
	c.at = c.at.Add(collector.DefaultHistory + 2*time.Minute)
	if _, s := n.Observe("GET /a", "", 200, &found); s != httpstat.Unearned {
		t.Errorf("GET /a is %v", s)
	}
}

// saved returns the content of the file that Save writes.
func saved(t *testing.T, n *httpstat.Names) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "names")
	if err := n.Save(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkValues fails the test if more than maxValues values at one position of the paths have their own names.
func checkValues(t *testing.T, n *httpstat.Names, plains []string, maxValues int) {
	t.Helper()
	at := map[string]map[string]bool{}
	for _, plain := range plains {
		name, s := n.Name(plain, "")
		if s != httpstat.Earned {
			continue
		}
		before := ""
		for _, v := range strings.Split(name, "/")[1:] {
			if at[before] == nil {
				at[before] = map[string]bool{}
			}
			if v != "*" && v != ":id" && name != "GET /" {
				at[before][v] = true
			}
			before += "/" + v
		}
	}
	for place, values := range at {
		if len(values) > maxValues {
			t.Errorf("%d values at %q: %v", len(values), place, values)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("some paths of a service/that answers/anything/with\xff/success"), 2)
	f.Add([]byte("/*/:id//..//./%2f"), 1)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = 1 + int(uint(most)%5)
		n, c := newNames(t, httpstat.NamesOptions{MaxNames: 20, MaxValues: most})
		name := httpstat.PathName(3)
		var plains []string
		for i, path := range strings.Split(string(data), "\n") {
			r := httptest.NewRequest("GET", "/", nil)
			r.URL.Path = "/" + path
			plain := name(r)
			plains = append(plains, plain)
			c.at = c.at.Add(time.Duration(i) * time.Second)
			n.Learn(plain, fmt.Sprint(i%3), 200)
			got, s := n.Name(plain, fmt.Sprint(i%3))
			if again, s2 := n.Name(plain, fmt.Sprint(i%3)); again != got || s2 != s {
				t.Errorf("%q is %q %v, and then %q %v", plain, got, s, again, s2)
			}
			if got != collector.CleanName(got) ||
				strings.Count(got, "/") != strings.Count(plain, "/") && len(plain) < 150 {
				t.Errorf("%q is %q", plain, got)
			}
		}
		checkValues(t, n, plains, most)
	})
}

// A single-page application responds to every path with success. Paths with many calls get their own names, even if
// their first call comes late. All paths together, with 300,000 invented ones, earn at most 100 names.
func TestBusyValuesKeepNames(t *testing.T) {
	n, c := newNames(t, httpstat.NamesOptions{})
	late := 0
	for i := range 300_000 {
		call(n, fmt.Sprintf("GET /x%d/y%d", i, i*7), fmt.Sprint("10.0.0.", i%200), 200)
		if i%10 == 0 {
			call(n, "GET /home", "", 200)
		}
		if i > 200_000 && i%1000 == 0 {
			if late++; call(n, "POST /checkout", "192.0.2.1", 200) == "POST /checkout earned" {
				late = 0
			} else if late > 10 {
				t.Fatalf("call %d has no name", late)
			}
		}
		if i%1000 == 0 {
			c.at = c.at.Add(time.Second)
		}
	}
	for _, name := range []string{"GET /home", "POST /checkout"} {
		if got, s := n.Name(name, ""); got != name || s != httpstat.Earned {
			t.Errorf("%s is %s, %v", name, got, s)
		}
	}
	if m := metric(n, "earned_names"); m > 100 {
		t.Errorf("%v names are earned", m)
	}
}

func metric(n *httpstat.Names, name string) float64 {
	for _, m := range n.Metrics() {
		if m.Name == name {
			return m.Value()
		}
	}
	return -1
}

// Regression: a scanner on one host, or with all addresses of a /64, could earn names until MaxNames names were in use.
// The names of real clients were then refused.
func TestHostsShareNames(t *testing.T) {
	n, c := newNames(t, httpstat.NamesOptions{MaxNames: 100, MaxValues: 1000})
	for i := range 5000 {
		host := fmt.Sprintf("[2001:db8::%x]:443", i)
		call(n, fmt.Sprintf("GET /s%d", i%900), host, 200)
	}
	if m := metric(n, "earned_names"); m != 50 {
		t.Errorf("one host has %v of 100 names", m)
	}
	for i := range 30 {
		call(n, fmt.Sprintf("GET /shop%d", i), fmt.Sprint("192.0.2.", i), 200)
		if _, s := n.Name(fmt.Sprintf("GET /shop%d", i), "192.0.2.7"); s != httpstat.Earned {
			t.Errorf("shop %d is %v", i, s)
		}
	}
	if metric(n, "refused_names_total") == 0 {
		t.Error("no name was refused")
	}
	c.at = c.at.Add(10*time.Minute + time.Second) // names without a call for ten minutes free their slots
	for i := range 45 {
		call(n, fmt.Sprintf("GET /new%d", i), "192.0.2.1", 200)
		if _, s := n.Name(fmt.Sprintf("GET /new%d", i), ""); s != httpstat.Earned {
			t.Errorf("new %d is %v", i, s)
		}
	}
	if _, s := n.Name("GET /shop1", ""); s != httpstat.Earned {
		t.Error("GET /shop1 is no longer earned")
	}
}

// Names survive a restart. The name of a job that runs once a day is still earned in the next process. If a position of
// the path has too few slots, the saved numbers of calls decide which values get the slots.
func TestNamesAreSavedAndLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.json")
	n, _ := newNames(t, httpstat.NamesOptions{MaxValues: 2})
	if err := n.Load(path); err != nil {
		t.Errorf("no file: %v", err)
	}
	for i, plain := range []string{"POST /jobs/nightly", "GET /a/b", "GET /a/c", "GET /a/d", "GET /a/\xff\"|"} {
		for range 5 - i {
			call(n, plain, "", 200)
		}
	}
	if err := n.Save(path); err != nil {
		t.Fatal(err)
	}
	next, c := newNames(t, httpstat.NamesOptions{MaxValues: 2})
	c.at = c.at.Add(24 * time.Hour)
	if err := next.Load(path); err != nil {
		t.Fatal(err)
	}
	for _, plain := range []string{
		"POST /jobs/nightly", "GET /a/b", "GET /a/c", "GET /a/d", "GET /a/new",
		"GET /other",
	} {
		was, s := n.Name(plain, "")
		if name, s2 := next.Name(plain, ""); name != was || s2 != s {
			t.Errorf("%s was %s %v, and is %s %v", plain, was, s, name, s2)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}

// Load renames a file that it cannot read, and returns an error with the new name. The Names stays usable without the
// names in the file.
func TestUnreadableNamesFile(t *testing.T) {
	for name, text := range map[string]string{
		"torn": `[{"name":"GET /a"`, "empty": "", "other": `{"names":1}`, "numbers": `[{"name":"GET /a","calls":-1}]`,
		"huge": `[{"name":"GET /a","calls":99999999999}]`,
	} {
		path := filepath.Join(t.TempDir(), "names.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, _ := newNames(t, httpstat.NamesOptions{})
		if err := n.Load(path); err == nil ||
			!strings.Contains(err.Error(), "renamed the file to "+path+".unreadable") {
			t.Errorf("%s: %v", name, err)
		}
		if kept, err := os.ReadFile(path + ".unreadable"); err != nil || string(kept) != text {
			t.Errorf("%s: %q, %v", name, kept, err)
		}
		if err := n.Save(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := n.Load(path); err != nil {
			t.Errorf("%s, saved again: %v", name, err)
		}
	}
	n, _ := newNames(t, httpstat.NamesOptions{})
	dir := t.TempDir()
	if err := n.Load(dir); err == nil {
		t.Error("Load returns no error for a directory")
	}
	if err := n.Save(filepath.Join(dir, "x", "y")); err == nil {
		t.Error("Save returns no error for a file in a missing directory")
	}
	long := strings.Repeat("x", 500)
	list := `[{"name":"GET /` + long + `"},{"name":""},{"name":"` + httpstat.Unmatched + `"},` +
		`{"name":"GET /a/b/c","calls":4294967295,"last":9999999999999}]`
	if err := os.WriteFile(filepath.Join(dir+".unreadable", "long"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Load(filepath.Join(dir+".unreadable", "long")); err != nil {
		t.Error(err)
	}
	for range 3 {
		call(n, "GET /a/b/c", "", 200)
	}
	if got, s := n.Name("GET /a/b/c", ""); got != "GET /a/b/c" || s != httpstat.Earned {
		t.Errorf("%s %v", got, s)
	}
}

func TestNamesOptionsValidation(t *testing.T) {
	_, err := httpstat.NewNames(httpstat.NamesOptions{MaxNames: -1, MaxValues: 1001})
	for _, want := range []string{"MaxNames is -1", "MaxValues is 1001; the range is 1 to 1000"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// A path without a successful response counts only as unmatched, unless a limit has exactly the name of the path. The
// first success earns the name: further calls count for a resource of this name. A response 429 that httpstat itself
// sends earns nothing.
func TestEarn(t *testing.T) {
	c := newCollector(t)
	if err := c.SetLimits([]collector.Limit{
		{Resource: "GET /*", Count: 3, Strict: true},
		{Resource: "POST /login", Count: 1, Strict: true},
	}); err != nil {
		t.Fatal(err)
	}
	n, _ := newNames(t, httpstat.NamesOptions{})
	h := httpstat.Handler(c, httpstat.PathName(0), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/real") {
			w.WriteHeader(http.StatusNotFound)
		}
	}), httpstat.Earn(n))
	statuses := map[string][]int{}
	for _, what := range []string{"GET /scan", "GET /real", "GET /scan2", "POST /login", "BREW /real", "PURGE /real"} {
		method, path, _ := strings.Cut(what, " ")
		for range 5 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			statuses[what] = append(statuses[what], w.Code)
		}
	}
	if got := fmt.Sprint(statuses["GET /scan"], statuses["GET /real"], statuses["GET /scan2"],
		statuses["POST /login"]); got !=
		"[404 404 404 429 429] [200 200 200 429 429] [404 404 404 429 429] [404 429 429 429 429]" {
		t.Error(got)
	}
	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		s := r.Snapshot(nil).Total
		got[r.Name()] = fmt.Sprintf("%d pass, %d block", s.Pass, s.Block)
	}
	want := "map[GET /real:2 pass, 2 block OTHER /real:9 pass, 0 block POST /login:1 pass, 4 block " +
		"unmatched:8 pass, 4 block]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if h := c.Health(); h.Unearned != 12 {
		t.Errorf("%+v", h)
	}
}

// Regression: a limit on the login path refused a client that guessed passwords, until ten other paths had more calls
// than the login path. The name of the login path then became "*", and the limit no longer applied.
func TestFoldingDoesNotBypassLimits(t *testing.T) {
	for _, limited := range []string{"POST /login", "POST /log*", "*/login", "*"} {
		c := newCollector(t)
		if err := c.SetLimits([]collector.Limit{{Resource: limited, Count: 3, Strict: true}}); err != nil {
			t.Fatal(err)
		}
		n, _ := newNames(t, httpstat.NamesOptions{MaxValues: 2})
		h := httpstat.Handler(c, httpstat.PathName(0), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" && r.Header.Get("Password") != "guessed" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}), httpstat.Earn(n))
		passed := map[string]int{}
		send := func(method, path, password string) {
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("Password", password)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusTooManyRequests {
				passed[path]++
			}
		}
		for _, path := range []string{"/a", "/b", "/c"} { // POST /c gets the name "POST /*"
			send("POST", path, "")
		}
		for i := range 50 {
			send("POST", "/login", map[bool]string{true: "guessed"}[i == 1 || i > 30])
		}
		if passed["/login"] > 3 || limited != "*" && passed["/login"] != 3 {
			t.Errorf("limit on %s: %d passed, want 3", limited, passed["/login"])
		}
	}
}

// Regression: two concurrent calls of Save used the same temporary file, and one of the calls failed because the other
// had removed the file.
func TestConcurrentSaves(t *testing.T) {
	n, _ := newNames(t, httpstat.NamesOptions{})
	call(n, "GET /a", "", 200)
	path := filepath.Join(t.TempDir(), "names")
	var saving sync.WaitGroup
	for range 20 {
		saving.Go(func() {
			if err := n.Save(path); err != nil {
				t.Error(err)
			}
		})
	}
	saving.Wait()
	again, _ := newNames(t, httpstat.NamesOptions{})
	if err := again.Load(path); err != nil {
		t.Error(err)
	}
	if _, s := again.Name("GET /a", ""); s != httpstat.Earned {
		t.Error(s)
	}
}

// NamesOptions.Host determines the sender of a request. Behind a trusted proxy, the sender is the client of the proxy.
func TestHostOfARequest(t *testing.T) {
	c := newCollector(t)
	n, _ := newNames(
		t,
		httpstat.NamesOptions{
			MaxNames:  20,
			MaxValues: 100,
			Host:      func(r *http.Request) string { return r.Header.Get("X-Real-Ip") },
		},
	)
	h := httpstat.Handler(
		c,
		httpstat.PathName(0),
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		httpstat.Earn(n),
	)
	for i := range 18 {
		r := httptest.NewRequest("GET", fmt.Sprint("/p", i), nil)
		r.Header.Set("X-Real-Ip", fmt.Sprintf("2001:db8:0:%x::1", i))
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if m := metric(n, "earned_names"); m != 18 {
		t.Errorf("%v names, want 18", m)
	}
}

func BenchmarkNames(b *testing.B) {
	n, _ := newNames(b, httpstat.NamesOptions{})
	plains := []string{"GET /api/v1/users/:id", "POST /api/v1/orders", "GET /", "GET /api/v1/users/:id/orders"}
	for _, plain := range slices.Repeat(plains, 10) {
		call(n, plain, "192.0.2.1", 200)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call(n, plains[i%len(plains)], "192.0.2.1", 200)
	}
}

// Regression: a client could have more names in use than its share. It earned names in several rounds, let them go out
// of use, and then called all of them again. Now a name that comes back into use needs a free slot in the share of the
// client's host, as a new name does.
func TestIdleNamesNeedAFreeShareAgain(t *testing.T) {
	n, c := newNames(t, httpstat.NamesOptions{MaxNames: 100, MaxValues: 1000})
	scan := func(i int) { call(n, fmt.Sprintf("GET /s%d", i), "192.0.2.66", 200) }
	for round := range 10 {
		for i := range 60 {
			scan(60*round + i)
		}
		c.at = c.at.Add(11 * time.Minute)
	}
	for i := range 600 {
		scan(i)
	}
	if m := metric(n, "earned_names"); m != 50 {
		t.Errorf("%v of 100 names are the scanner's", m)
	}
	call(n, "GET /shop", "192.0.2.1", 200)
	if _, s := n.Name("GET /shop", "192.0.2.1"); s != httpstat.Earned {
		t.Errorf("the shop is %v", s)
	}
}
