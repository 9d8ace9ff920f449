package replay

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Watch returns a channel on which the system tells of changes to the log or to what rotation makes of it, for
// [Options].Watch, and a function that ends that. What the system cannot tell, as on network file systems, is seen at the next
// look, which a Follower takes five times a second.
func Watch(log string) (<-chan struct{}, func() error, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, err
	}
	stem := strings.TrimSuffix(filepath.Base(log), filepath.Ext(log))
	target, _ := filepath.EvalSymlinks(log)
	if target == "" {
		target = log
	}
	err = errors.Join(w.Add(filepath.Dir(log)), w.Add(filepath.Dir(target)))
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	changed := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				if e.Name != target && !strings.HasPrefix(filepath.Base(e.Name), stem) {
					continue
				}
			case _, ok := <-w.Errors: // too many at once: look
				if !ok {
					return
				}
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, w.Close, nil
}
