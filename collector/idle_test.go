package collector_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// Regression: a service with a nil Collector panicked when it read the calls in flight and walked the tree. Every
// method of a nil Collector, and of every nil or zero value that it returns, must do nothing and read as idle.
// Reflection finds all methods, including methods that are added later.
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
	// Callers can get a zero Entry: TryEnter, for example, returns one for a refused call.
	walk.callAll(reflect.ValueOf(new(collector.Entry)), "zero Entry")

	// These calls caused the reported panic.
	var c *collector.Collector
	if n := c.Resource("x").View().InFlight() + c.Inbound().InFlight() +
		c.Resource("x").Origin("y").InFlight() + c.Tree().View().InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// idleWalk calls all methods of values by reflection, and checks that the results are idle (nil, zero or empty).
type idleWalk struct{ t *testing.T }

// nonZero lists the methods of a nil Collector and other idle values that return something other than the zero value,
// with a description of the result.
var nonZero = map[string]string{
	"*collector.Collector.Enter":       "the context",
	"*collector.Resource.EnterContext": "the context",
	"collector.View.Histogram":         "true: all of no seconds",
}

// callAll calls every exported method of x.
func (w idleWalk) callAll(x reflect.Value, name string) {
	w.t.Helper()
	if x.NumMethod() == 0 {
		w.t.Errorf("%s has no methods", name)
	}
	for i := range x.NumMethod() {
		method := x.Type().Method(i).Name
		if method == "SealAt" { // exported for tests only
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

// argument returns a value of type t, as an argument for the call of a method.
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

// checkIdle fails the test if v, the result of a method, is not idle. If v is a function, checkIdle calls it. If v is a
// View, checkIdle checks all methods of the View.
func (w idleWalk) checkIdle(v reflect.Value, name string) {
	w.t.Helper()
	switch x := v.Interface().(type) {
	case []collector.Metric: // a nil Collector lists its metrics, for documentation
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
