package metriclog

import "bytes"

// repair cuts both open files back to the last second whose lines are all there. What was written of a second when the
// process died is behind it; after a power cut the disk may have kept one file and not the other, and any part of it.
// Whole seconds that the index lacks are entered into it, so that no second that somebody may have read goes away.
//
// It reports false, and changes nothing, if there are lines of several seconds behind: no crash of ours leaves that.
func (f *files) repair() (bool, error) {
	o := f.opened()
	var end int64 // of the last whole second
	records := o.n
	for ; records > 0; records-- {
		second, offset := o.record(records - 1)
		if !o.agrees(second, offset) {
			continue
		}
		n, err := o.whole(second, offset)
		if err != nil {
			return false, err
		}
		if n > 0 {
			end = offset + n
			break
		}
	}
	rest := make([]byte, o.size-end)
	if _, err := f.data.ReadAt(rest, end); err != nil {
		return false, err
	}
	var missing []byte
	for {
		second, ok := f.second(rest)
		n, closed := f.whole(rest, second)
		if !ok || !closed || second < o.from || second >= o.to {
			break
		}
		missing = appendRecord(missing, second, end)
		end, rest = end+int64(n), rest[n:]
	}
	if f.several(rest) {
		return false, nil
	}
	kept := int64(records) * idxRecord
	if end == f.size && kept == f.idxSize {
		return true, nil
	}
	f.size, f.idxSize = end, kept
	if err := f.restore(); err != nil || len(missing) == 0 {
		return true, err
	}
	_, err := f.idx.WriteAt(missing, f.idxSize)
	f.idxSize += int64(len(missing))
	return true, err
}

// opened is the current file, for reading.
func (f *files) opened() *opened {
	o := &opened{format: f.format, data: f.data, idx: f.idx, index: index{f.idx, int(f.idxSize / idxRecord)}, size: f.size}
	o.from, o.to = f.current.span()
	return o
}

// whole is how many bytes the second at offset has, 0 if it is not there as a whole. That lines are missing at its end
// shows by the last one, which is not that of all inbound traffic. In a file of Sentinel's there need not be one, nor at
// the end of the second before.
func (o *opened) whole(second, offset int64) (int64, error) {
	rows := make([]byte, o.size-offset)
	if _, err := o.data.ReadAt(rows, offset); err != nil {
		return 0, err
	}
	n, closed := o.format.whole(rows, second)
	if closed || n == 0 {
		return int64(n), nil
	}
	if before, err := o.closed(offset); err != nil || before || offset == 0 {
		return 0, err
	}
	return int64(n), nil
}

// several reports whether there are lines of more than one second.
func (f *format) several(rows []byte) bool {
	first := int64(0)
	for len(rows) > 0 {
		line, rest, _ := bytes.Cut(rows, []byte("\n"))
		second, ok := f.second(line)
		if ok && first != 0 && second != first {
			return true
		}
		if ok {
			first = second
		}
		rows = rest
	}
	return false
}
