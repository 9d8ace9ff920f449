package replay

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal: bytes, lines a second, time left. Elsewhere it is silent.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar // nil until there is something to show
	began time.Time
	shown time.Time
	quiet bool
}

func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	return &progress{w: w, began: time.Now(), quiet: !ok || !term.IsTerminal(int(file.Fd()))}
}

// refresh is how often the bar changes.
const refresh = 100 * time.Millisecond

// show shows how much was read.
func (p *progress) show(read, size, lines int64) {
	now := time.Now()
	if p.quiet || now.Sub(p.shown) < refresh {
		return
	}
	p.shown = now
	if p.bar == nil {
		if size == 0 {
			size = -1 // then it turns
		}
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetWidth(20),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	p.bar.Describe(fmt.Sprintf("%.0f lines/s", float64(lines)/now.Sub(p.began).Seconds()))
	_ = p.bar.Set64(min(read, max(size, read)))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
