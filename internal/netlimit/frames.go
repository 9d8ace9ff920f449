package netlimit

import "bytes"

// preface is the beginning of an HTTP/2 connection without TLS.
var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

const (
	frameHeader = 9 // length of the header of an HTTP/2 frame: three bytes of length, one of type, five others
	dataFrame   = 0 // type of a frame with a part of a body
)

// frames finds the frames of HTTP/2 in the bytes of a connection. The zero value is a new connection.
type frames struct {
	other  bool // the connection does not speak HTTP/2
	begun  int  // bytes of the preface so far
	header [frameHeader]byte
	have   int // bytes of header so far
	left   int // bytes of the payload to come
}

// count returns the number of bytes in b that are not the payload of DATA frames, or 0 if the connection does not speak
// HTTP/2.
func (f *frames) count(b []byte) (n int) {
	if f.other {
		return 0
	}
	if f.begun < len(preface) {
		m := min(len(b), len(preface)-f.begun)
		if !bytes.Equal(b[:m], preface[f.begun:f.begun+m]) {
			f.other = true
			return 0
		}
		f.begun += m
		n, b = m, b[m:]
	}
	for len(b) > 0 {
		if f.left > 0 {
			m := min(len(b), f.left)
			f.left -= m
			if f.header[3] != dataFrame {
				n += m
			}
			b = b[m:]
			continue
		}
		m := copy(f.header[f.have:], b)
		f.have += m
		n += m
		b = b[m:]
		if f.have == frameHeader {
			f.have, f.left = 0, int(f.header[0])<<16|int(f.header[1])<<8|int(f.header[2])
		}
	}
	return n
}
