package collector_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// Regression: a service with a nil Collector panicked when it read the calls in flight and walked the tree. Every
// method of a nil Collector must do nothing and return an idle result (nil, zero or empty). The methods of each idle
// result must do the same. Reflection finds all methods, including methods that are added later.
func TestRegressionReadingANilCollectorPanicked(t *testing.T) {
	walk := idleWalk{t}
	for _, x := range []any{
		(*collector.Collector)(nil),
		(*collector.Resource)(nil),
		(*collector.TreeNode)(nil),
		collector.View{},
	} {
		walk.callAll(reflect.ValueOf(x), reflect.TypeOf(x).String())
	}
	// Callers can get a zero Entry. For example, TryEnter returns a zero Entry if a limit refuses the call.
	walk.callAll(reflect.ValueOf(new(collector.Entry)), "zero Entry")

	// The regression: these calls on a nil Collector panicked.
	var c *collector.Collector
	if n := c.Resource("x").View().InFlight() + c.Inbound().InFlight() +
		c.Resource("x").Origin("y").InFlight() + c.Tree().View().InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// idleWalk calls all methods of values by reflection, and checks that the results are idle (nil, zero or empty).
type idleWalk struct{ t *testing.T }

// nonZero lists methods that do not return the zero value, even if the receiver is a nil Collector or another idle
// value. For each method, the string describes the returned value.
var nonZero = map[string]string{
	"*collector.Collector.Enter":       "the context of the caller",
	"*collector.Resource.EnterContext": "the context of the caller",
	"collector.View.Histogram":         "true: the histogram covers the whole interval",
}

// callAll calls every exported method of x, and checks the results. The string name describes x in error messages.
func (w idleWalk) callAll(x reflect.Value, name string) {
	w.t.Helper()
	if x.NumMethod() == 0 {
		w.t.Errorf("%s has no methods", name)
	}
	for i := range x.NumMethod() {
		method := x.Type().Method(i).Name
		if method == "SealAt" { // SealAt exists only in tests
			continue
		}
		func() {
			defer func() {
				if v := recover(); v != nil {
					w.t.Errorf("%s.%s: %v", name, method, v)
				}
			}()
			f := x.Method(i)
			var args []reflect.Value
			for j := range f.Type().NumIn() {
				if !f.Type().IsVariadic() || j < f.Type().NumIn()-1 {
					args = append(args, argument(f.Type().In(j)))
				}
			}
			for _, result := range f.Call(args) {
				if nonZero[x.Type().String()+"."+method] == "" {
					w.checkIdle(result, name+"."+method)
				}
			}
		}()
	}
}

// argument returns a value of type t to pass to a method.
func argument(t reflect.Type) reflect.Value {
	switch {
	case t == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case t.Kind() == reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) (zero []reflect.Value) {
			for i := range t.NumOut() {
				zero = append(zero, reflect.Zero(t.Out(i)))
			}
			return zero
		})
	case t.Kind() == reflect.Pointer:
		return reflect.New(t.Elem())
	case t.Kind() == reflect.String:
		return reflect.ValueOf("x").Convert(t)
	}
	return reflect.Zero(t)
}

// checkIdle fails the test if v, the result of a method, is not idle. If v is a function, checkIdle calls the function.
// If v is a View, checkIdle checks all methods of the View.
func (w idleWalk) checkIdle(v reflect.Value, name string) {
	w.t.Helper()
	switch x := v.Interface().(type) {
	case []collector.Metric: // even a nil Collector returns a list of metrics; each value must be 0
		for _, m := range x {
			m.Each(func(v float64, _ ...string) {
				if v != 0 {
					w.t.Errorf("%s: %s is %v", name, m.Name, v)
				}
			})
		}
		return
	case collector.View:
		w.callAll(v, name)
		return
	}
	if v.Kind() != reflect.Func {
		if !v.IsZero() {
			w.t.Errorf("%s is %v", name, v)
		}
		return
	}
	if v.Type().NumIn() == 0 {
		v.Call(nil)
		return
	}
	yield := v.Type().In(0) // v is an iterator, and must yield nothing
	v.Call([]reflect.Value{reflect.MakeFunc(yield, func(args []reflect.Value) []reflect.Value {
		w.t.Errorf("%s yields %v", name, fmt.Sprint(args))
		return []reflect.Value{reflect.ValueOf(true)}
	})})
}
