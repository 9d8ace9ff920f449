package replay

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Watch has the system tell of changes to logs, or files that match patterns, and to what rotation makes of them, for
// [Options].Watch. What the system cannot tell, as on network file systems and in directories that match a pattern, is seen at the
// next look of a Follower.
func Watch(logs []string, changed func()) (end func() error, err error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	var stems []string
	for _, log := range logs {
		stem := strings.TrimSuffix(filepath.Base(log), filepath.Ext(log))
		stems = append(stems, stem[:min(len(stem), strings.IndexAny(stem+"*", "*?["))])
		err = errors.Join(err, w.Add(filepath.Dir(log)))
		if target, _ := filepath.EvalSymlinks(log); target != "" {
			stems = append(stems, filepath.Base(target))
			err = errors.Join(err, w.Add(filepath.Dir(target)))
		}
	}
	if err != nil && len(w.WatchList()) == 0 {
		return nil, errors.Join(err, w.Close())
	}
	go func() {
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				base := filepath.Base(e.Name)
				if !slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(base, stem) }) {
					continue
				}
			case _, ok := <-w.Errors: // too many at once: look
				if !ok {
					return
				}
			}
			changed()
		}
	}()
	return w.Close, nil
}
