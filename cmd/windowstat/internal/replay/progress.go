package replay

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// newProgress makes a bar on a terminal, of bytes, lines a second and the time left, which is silent elsewhere: one function shows how much
// was read, the other takes the bar away.
func newProgress(w io.Writer) (show func(read, size, lines int64), end func()) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar // nil until the size is known
	began := time.Now()
	show = func(read, size, lines int64) {
		if bar == nil {
			if size == 0 {
				size = -1 // then it turns
			}
			bar = progressbar.NewOptions64(size,
				progressbar.OptionSetWriter(w),
				progressbar.OptionShowBytes(true),
				progressbar.OptionShowTotalBytes(true),
				progressbar.OptionSetWidth(20),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionUseANSICodes(true),
				progressbar.OptionClearOnFinish(),
			)
		}
		bar.Describe(fmt.Sprintf("%.0f lines/s", float64(lines)/time.Since(began).Seconds()))
		_ = bar.Set64(min(read, max(size, read)))
	}
	return show, func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
}
