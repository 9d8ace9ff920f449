package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// windowWidth is the default width of a window in pixels.
const windowWidth = 1280

// startBrowser starts Debian's chromium. The browser runs until the test and its subtests have ended.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	executable, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("the tests of the live page need a browser, which apt-get install chromium installs: %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(executable),
		chromedp.WindowSize(windowWidth, 900),
		chromedp.Flag("lang", "en"),
		chromedp.Flag("no-sandbox", os.Getuid() == 0), // chromium refuses to run as root otherwise
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", executable, err)
	}
	return ctx
}

// picturesDir returns the directory of the pictures of the page.
const picturesDir = "WINDOWSTAT_E2E_PICTURES"

// keepPicture writes a picture of the page for people to check.
func keepPicture(t *testing.T, name string, png []byte) {
	t.Helper()
	dir := os.Getenv(picturesDir)
	if dir == "" {
		dir = "pictures"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
