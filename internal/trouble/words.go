package trouble

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String describes the trouble in a few words, such as "hangs: 1,000 in flight, oldest 17 s".
func (t Trouble) String() string {
	switch t.Kind {
	case Hanging:
		return fmt.Sprintf("hangs: %s in flight, oldest %s", number(t.Calls), duration(t.Age))
	case Stopped:
		usual := number(int64(t.Usual + 0.5))
		if t.Usual < 1 {
			usual = strconv.FormatFloat(t.Usual, 'g', 1, 64)
		}
		return fmt.Sprintf("stopped: 0, usually %s", usual)
	case Failing:
		return fmt.Sprintf("%s of %s failed", number(t.Calls), number(t.Of))
	case Refusing:
		return fmt.Sprintf("%s of %s refused", number(t.Calls), number(t.Of))
	case Slow:
		what := "average"
		if t.Slowest {
			what = "slowest calls"
		}
		return fmt.Sprintf("slow: %s × %s", what, strconv.FormatFloat(t.Times, 'f', 1, 64))
	}
	return ""
}

// Words joins the descriptions of all troubles of a resource.
func Words(list []Trouble) string {
	var words []string
	for _, t := range list {
		words = append(words, t.String())
	}
	return strings.Join(words, "; ")
}

// verbs name the kinds of trouble of one resource and of several. None is for resources with different kinds.
var verbs = map[Kind][2]string{
	Hanging:  {"hangs", "hang"},
	Stopped:  {"has stopped", "have stopped"},
	Failing:  {"fails", "fail"},
	Refusing: {"refuses calls", "refuse calls"},
	Slow:     {"is slow", "are slow"},
	None:     {"is in trouble", "are in trouble"},
}

// String returns the verb for the kind, such as "hangs".
func (k Kind) String() string { return verbs[k][0] }

// Resource is a resource in trouble.
type Resource struct {
	Name     string
	Troubles []Trouble // as Find returns them; not empty
	Since    time.Time // beginning of the trouble
	Callers  []string  // resources that call this one
	Limits   string    // limits that may refuse its calls, such as "37 calls per second", or empty
}

// kind returns the worst kind of trouble.
func (r *Resource) kind() Kind { return r.Troubles[0].Kind }

// affectsCallers reports whether a caller of the resource gets the same kind of trouble: it waits, or fails as well.
func (k Kind) affectsCallers() bool { return k == Hanging || k == Failing || k == Slow }

// Rank sorts resources in trouble, the worst first. Causes precede effects: within a kind of trouble, a resource with a
// callee in the same trouble follows all others.
func Rank(list []Resource) {
	kinds := map[string]Kind{}
	for _, r := range list {
		kinds[r.Name] = r.kind()
	}
	effect := map[string]int{} // 1 for a resource with an explanation
	for _, r := range list {
		for _, caller := range r.Callers {
			if kinds[caller] == r.kind() && r.kind().affectsCallers() && caller != r.Name {
				effect[caller] = 1
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Resource) int {
		return cmp.Or(
			cmp.Compare(b.kind(), a.kind()),
			effect[a.Name]-effect[b.Name],
			Compare(a.Troubles[0], b.Troubles[0]),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// maxNamed is the number of callers that a sentence names.
const maxNamed = 3

// Sentence describes the first resource of a ranked list with its beginning and its callers, and counts the others. If
// the resource refuses calls, the sentence names its limits. If it fails and is called far more often than usual, the
// sentence states how often, because clients probably retry. Sentence returns the texts before and after the time,
// because screens have different time zones. Both are "" for an empty list. For example:
//
//	db: products hangs since 01:33:05; GET /products/{id} and GET /search wait for it.
//	GET /search refuses calls since 01:33:05; its limit is 37 calls per second; 2 others are slow.
//	POST /payments fails since 01:33:05; it is called 4 times as often as usual.
func Sentence(list []Resource) (before, after string) {
	if len(list) == 0 {
		return "", ""
	}
	worst := &list[0]
	before = fmt.Sprintf("%s %v since ", worst.Name, worst.kind())
	if worst.kind() == Refusing && worst.Limits != "" {
		after = "; its limit is " + worst.Limits
	}
	if worst.kind() == Failing && worst.Troubles[0].Times > 0 {
		after = fmt.Sprintf("; it is called %.0f times as often as usual", worst.Troubles[0].Times)
	}
	var affected []string
	var others []Resource
	for _, r := range list[1:] {
		if worst.kind().affectsCallers() && r.kind() == worst.kind() && slices.Contains(worst.Callers, r.Name) {
			affected = append(affected, r.Name)
		} else {
			others = append(others, r)
		}
	}
	return before, after + effects(worst.kind(), affected) + count(others) + "."
}

// effects names the callers that a kind of trouble affects, such as "; GET /a and GET /b wait for it".
func effects(k Kind, callers []string) string {
	n := len(callers)
	if n == 0 {
		return ""
	}
	if n > maxNamed {
		callers = append(callers[:maxNamed-1:maxNamed-1], fmt.Sprintf("%d others", n-maxNamed+1))
	}
	verbs := map[bool][2]string{false: {"waits for it", "wait for it"}, true: {"fails as well", "fail as well"}}
	return "; " + join(callers) + " " + verbs[k == Failing][min(n-1, 1)]
}

// count counts resources that the sentence does not name, such as "; 2 others are slow".
func count(others []Resource) string {
	if len(others) == 0 {
		return ""
	}
	kind := others[0].kind()
	if slices.ContainsFunc(others, func(r Resource) bool { return r.kind() != kind }) {
		kind = None
	}
	if len(others) == 1 {
		return "; 1 other " + verbs[kind][0]
	}
	return fmt.Sprintf("; %d others %s", len(others), verbs[kind][1])
}

// join joins names to "a, b and c".
func join(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// number formats an integer with commas between thousands.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// duration formats the age of a call in whole seconds, or in minutes and hours from two minutes on.
func duration(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
