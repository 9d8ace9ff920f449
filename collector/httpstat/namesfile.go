package httpstat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/windowstat/windowstat/internal/atomicfile"

	"github.com/windowstat/windowstat/collector"
)

// savedName is an earned name in a file.
type savedName struct {
	Name  string `json:"name"`
	Calls uint32 `json:"calls"`
	Last  int64  `json:"last"` // Unix time
}

// maxSaved bounds what is read of a file, in bytes.
const maxSaved = 64 << 20

// Save writes the earned names to a file, for [Names.Load]: aside first, so that the file is the old one or the new one
// whatever happens.
func (n *Names) Save(path string) error {
	n.saving.Lock()
	defer n.saving.Unlock()
	n.mu.Lock()
	var list []savedName
	for _, name := range slices.Sorted(maps.Keys(n.earned.byName)) {
		x := n.earned.byName[name]
		list = append(list, savedName{x.name, x.calls, x.last})
	}
	n.mu.Unlock()
	return atomicfile.Replace(path, list)
}

// Load remembers the names that were saved, as ones that are not in use. No file is none. One that cannot be read is
// renamed, to its name and ".bad", and the error says so: names must be earned again then, and nothing else is wrong.
func (n *Names) Load(path string) error {
	list, err := readNames(path)
	if err != nil {
		bad := path + ".bad"
		if err2 := os.Rename(path, bad); err2 != nil {
			return errors.Join(err, err2)
		}
		return fmt.Errorf("%s is set aside as %s: %w", path, bad, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.opts.Now().Unix()
	slices.SortStableFunc(list, func(a, b savedName) int { return cmp.Compare(b.Calls, a.Calls) }) // who has a place first
	for _, x := range list {
		name := collector.CleanName(x.Name)
		if n.given[name] || n.earned.byName[name] != nil || len(n.earned.byName) >= remembered*n.opts.MaxNames {
			continue
		}
		calls := min(x.Calls, maxCount)
		n.earned.byName[name] = &earnedName{name: name, calls: calls, last: min(x.Last, now)}
		n.earned.rest(n.earned.byName[name])
		n.places.restore(name, calls)
	}
	return nil
}

func readNames(path string) (list []savedName, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, maxSaved+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSaved {
		return nil, fmt.Errorf("it has more than %d bytes", maxSaved)
	}
	return list, json.Unmarshal(b, &list)
}
