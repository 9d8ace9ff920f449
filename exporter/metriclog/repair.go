package metriclog

import "bytes"

// repair truncates both open files behind the last complete second. A crash can leave part of a second behind it; after a power
// cut the disk may have one file without the other, and any part of it. Complete seconds that the index lacks are added to it,
// so that no second disappears that was readable.
//
// It reports false, and changes nothing, if lines of several seconds are behind it: no crash of this package leaves that.
func (f *files) repair() (bool, error) {
	o := f.reader()
	var end int64 // of the last complete second
	records := o.n
	for ; records > 0; records-- {
		second, offset := o.record(records - 1)
		if !o.matches(second, offset) {
			continue
		}
		n, err := o.lengthAt(second, offset)
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
		second, ok := secondOf(rest)
		n, complete := secondLength(rest, second)
		if !ok || !complete || second < o.from || second >= o.to {
			break
		}
		missing = appendRecord(missing, second, end)
		end, rest = end+int64(n), rest[n:]
	}
	if severalSeconds(rest) {
		return false, nil
	}
	kept := int64(records) * idxRecord
	if end == f.size && kept == f.idxSize {
		return true, nil
	}
	f.size, f.idxSize = end, kept
	if err := f.truncate(); err != nil || len(missing) == 0 {
		return true, err
	}
	_, err := f.idx.WriteAt(missing, f.idxSize)
	f.idxSize += int64(len(missing))
	return true, err
}

// reader returns the current file, for reading.
func (f *files) reader() *segmentReader {
	o := &segmentReader{data: f.data, idx: f.idx, index: index{f.idx, int(f.idxSize / idxRecord)}, size: f.size}
	o.from, o.to = f.current.span()
	return o
}

// lengthAt returns the length in bytes of the second at offset; 0 if it is incomplete. A second is complete if its last line is
// the total of inbound calls. In a file of Sentinel there may be none, nor at the end of the second before.
func (o *segmentReader) lengthAt(second, offset int64) (int64, error) {
	rows := make([]byte, o.size-offset)
	if _, err := o.data.ReadAt(rows, offset); err != nil {
		return 0, err
	}
	n, complete := secondLength(rows, second)
	if complete || n == 0 {
		return int64(n), nil
	}
	if before, err := o.completeAt(offset); err != nil || before || offset == 0 {
		return 0, err
	}
	return int64(n), nil
}

// secondLength returns the length in bytes of the lines of a second at the start of rows; 0 if one of them is truncated or
// malformed. Lines of a later second may follow, the last one truncated. complete says that the last line is the total of
// inbound calls, with which the Writer ends a second.
func secondLength(rows []byte, second int64) (n int, complete bool) {
	for n < len(rows) {
		rest := rows[n:]
		end := bytes.IndexByte(rest, '\n')
		got, ok := secondOf(rest)
		switch {
		case ok && got != second:
			return n, complete
		case complete && (!ok || end < 0):
			return n, complete // garbage behind a complete second
		case end < 0 && len(rest) < maxStamp && !ok && n > 0 && len(bytes.Trim(rest, "0123456789")) == 0:
			return n, complete // truncated within the timestamp: it may be a later second's
		case !ok || end < 0:
			return 0, false
		}
		complete = isTotal(rest[:end])
		n += end + 1
	}
	return n, complete
}

// severalSeconds reports whether there are lines of more than one second.
func severalSeconds(rows []byte) bool {
	first := int64(0)
	for len(rows) > 0 {
		line, rest, _ := bytes.Cut(rows, []byte("\n"))
		second, ok := secondOf(line)
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
