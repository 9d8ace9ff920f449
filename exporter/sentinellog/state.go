package sentinellog

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// state is the content of the state file. It is saved before consumers may see further seconds, so the next Follower
// knows which rows arrived after their seconds were exported.
type state struct {
	Sealed    int64 // consumers may have seen all seconds of the line before it
	Processes map[string]processState
}

// processState is the state of a process.
type processState struct {
	Run      int64
	Exported int64   `json:",omitempty"`
	Delays   []delay `json:",omitempty"`
}

// Names of files in the state directory.
const (
	stateName = "windowstat-sentinel.json"
	lockName  = "windowstat-sentinel.lck"
	filePart  = "windowstat-" // begins the names of the consumers' files
)

// check returns an error for a state that no Follower wrote.
func (s state) check() error {
	for name, p := range s.Processes {
		ascend := slices.IsSortedFunc(p.Delays, func(a, b delay) int { return int(min(max(a.By-b.By, -1), 1)) })
		if p.Run <= 0 || p.Exported < 0 || !ascend {
			return fmt.Errorf("invalid state of the process %q", name)
		}
	}
	if s.Sealed < 0 {
		return fmt.Errorf("invalid second: %d", s.Sealed)
	}
	return nil
}

// Run returns the run of a process, the value of windowstat_persecond_run, from the state directory of a Follower. With
// [Options].Sum, PID is 0. It returns 0 if the Follower has not seen the process.
func Run(stateDir string, log metriclog.Log) (int64, error) {
	var s state
	err := atomicfile.Read(filepath.Join(stateDir, stateName), &s)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return 0, fmt.Errorf("sentinellog: %w", err)
	}
	return s.Processes[log.String()].Run, nil
}

// load loads the state of the previous Follower.
func (f *Follower) load() {
	saved, err := atomicfile.Load(f.path(stateName), state.check)
	if err != nil {
		f.opts.Logger.Error(
			"cannot use the state of the logs; some seconds may be exported twice or not at all",
			"err",
			err,
		)
	}
	f.sealed, f.saved = saved.Sealed, saved
}

// save saves the state with which consumers may see the seconds before sealed. mu must be held.
func (f *Follower) save(sealed int64) {
	s := state{Sealed: sealed, Processes: map[string]processState{}}
	for name, p := range f.saved.Processes { // the directory may be unavailable for some time
		if p.Exported > sealed-int64(f.opts.Keep/time.Second) {
			s.Processes[name] = p
		}
	}
	for _, p := range f.processes {
		s.Processes[p.name] = processState{p.run, p.exported, p.delays}
	}
	err := atomicfile.Swap(f.path(stateName), s)
	f.failures.set(f, stateName, err, "cannot save the state of the logs; the next process may lose late rows")
}

// path returns the path of a file in the state directory.
func (f *Follower) path(name string) string { return filepath.Join(f.opts.StateDir, name) }

// stateFile returns the path of a state file of a consumer. It returns each name only once.
func (f *Follower) stateFile(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.stateFiles, name) {
		return "", fmt.Errorf("sentinellog: state file %s is already in use", f.path(filePart+name))
	}
	f.stateFiles = append(f.stateFiles, name)
	return f.path(filePart + name), nil
}
