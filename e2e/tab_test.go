package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A tab has a live page open, and records all complaints of the browser: script errors and console output, failed
// requests, violations of the content security policy, and dialogs.
type tab struct {
	ctx   context.Context
	width int64 // of the window

	mu         sync.Mutex
	complaints []string
}

// openTab opens a page until the end of the test. The test fails if the browser has complained then, except for
// complaints with one of the given words.
func openTab(t *testing.T, browser context.Context, url string, but ...string) *tab {
	t.Helper()
	x := &tab{width: windowWidth}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithListener(x.listen))
	t.Cleanup(cancel)
	x.ctx = ctx
	t.Cleanup(func() { x.checkComplaints(t, but) })
	call(t, x, network.Enable, network.EnableParams{})
	x.do(t, chromedp.Navigate(url))
	return x
}

func (x *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				x.complain("console: %s %s%s", e.Type, a.Value, a.Description)
			}
		}
	case *runtime.EventExceptionThrown:
		x.complain("script: %v", &chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails})
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			x.complain("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // canceled by the page itself
			x.complain("request: %s %s", e.ErrorText, e.BlockedReason)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			x.complain("request: status %d of %s", e.Response.Status, e.Response.URL)
		}
	case *page.EventJavascriptDialogOpening:
		x.complain("dialog: %s", e.Message)
	}
}

func (x *tab) complain(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complaints = append(x.complaints, fmt.Sprintf(format, args...))
}

func (x *tab) checkComplaints(t *testing.T, but []string) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
next:
	for _, c := range x.complaints {
		for _, word := range but {
			if strings.Contains(c, word) {
				continue next
			}
		}
		t.Errorf("the browser complains: %s", c)
	}
}

// do runs an action that must succeed.
func (x *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(x.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// tell returns the value of an expression in the page.
func tell[T any](t *testing.T, x *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(x.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// run runs a script in the page.
func (x *tab) run(t *testing.T, script string) {
	t.Helper()
	x.do(t, chromedp.Evaluate[chromedp.Void](script))
}

// call calls a method of the browser.
func call[P, R any](t *testing.T, x *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(x.ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

// await waits until a condition holds in the page. During a reload the page has no script context. The browser then
// reports that the context was destroyed, and the result of the condition is lost.
func (x *tab) await(t *testing.T, condition string) {
	t.Helper()
	const maxWait = 2 * catchUp // allows for a busy machine
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		holds, err := chromedp.Run(x.ctx, chromedp.Evaluate[bool](condition))
		if err == nil && holds {
			return
		}
		if time.Since(begin) > maxWait {
			if err != nil {
				t.Fatalf("%s: %v", condition, err)
			}
			t.Fatalf("%s does not get true; the page says %q", condition, x.look(t).State)
		}
	}
}

// keep saves a picture of the whole page, which must not be wider than the window.
func (x *tab) keep(t *testing.T, name string) {
	t.Helper()
	if width := tell[int64](t, x, `document.documentElement.scrollWidth`); width > x.width {
		t.Errorf("%s: the page is %d pixels wide, and the window only %d", name, width, x.width)
	}
	png, err := chromedp.Run(x.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	keepPicture(t, name, png)
}

// resize sets the size of the window.
func (x *tab) resize(t *testing.T, width, height int64, phone bool) {
	t.Helper()
	x.width = width
	ratio := 1.
	if phone {
		ratio = 2
	}
	call(t, x, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, ScreenWidth: width, ScreenHeight: height, DeviceScaleFactor: ratio, Mobile: phone,
	})
}

// scheme selects the light or dark color scheme of the page.
func (x *tab) scheme(t *testing.T, name string) {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	call(t, x, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}
