package collector

import (
	"iter"
	"strconv"

	"github.com/windowstat/windowstat/node"
)

// Code is how a call was answered: an HTTP status or a gRPC code, made by [HTTPStatus] and [GRPCCode]. It tells calls that
// ended apart in their total, see [View.Codes] and [Entry.ExitCode]; which codes are exceptions is the caller's to say. Its zero
// value is no code. There are some eighty of them, whatever a service answers, so a label with codes is bounded.
type Code struct{ n node.Code }

// How codes are numbered for package node, in the order in which they are shown: statuses by themselves.
const (
	grpcCodes node.Code = 1000
	otherCode node.Code = 2000
)

// OtherCode is the String of codes that nobody has registered.
const OtherCode = "other"

// HTTPStatus is the code of a response's status, if it is in IANA's registry (unused and temporary entries included); all
// others are one code, [OtherCode].
func HTTPStatus(status int) Code {
	for _, r := range registered {
		if r.from <= status && status <= r.to {
			return Code{node.Code(status)}
		}
	}
	return Code{otherCode}
}

// registered are the ranges of IANA's registry of HTTP status codes, the most common first.
var registered = [...]struct{ from, to int }{
	{200, 208}, {400, 418}, {300, 308}, {500, 508}, {421, 426}, {100, 104}, {428, 429}, {431, 431}, {451, 451}, {226, 226}, {510, 511},
}

// GRPCCode is the code of a gRPC status; the numbers of codes.Code beyond Unauthenticated are [OtherCode].
func GRPCCode(code uint32) Code {
	if code >= uint32(len(grpcNames)) {
		return Code{otherCode}
	}
	return Code{grpcCodes + node.Code(code)}
}

// grpcNames are gRPC's codes by number, with the names that its Go library gives them and go-grpc-middleware's label
// grpc_code has.
var grpcNames = [...]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss",
	"Unauthenticated",
}

// String is the value of the label code: 404, NotFound, [OtherCode], or empty for no code.
func (c Code) String() string { return CodeName(c.n) }

// CodeName is the String of the code that a leaf has counted, for ways out that read [node.Codes].
func CodeName(n node.Code) string {
	switch {
	case n == 0:
		return ""
	case n < grpcCodes:
		return strconv.Itoa(int(n))
	case n < otherCode:
		return grpcNames[n-grpcCodes]
	}
	return OtherCode
}

// Codes iterates over the calls that ended by their codes, statuses first, as of one moment. The first is always no code, with
// the calls that ended without one: together they are the Total.Complete of a [View.Snapshot] at that moment. It yields nothing
// for a view that is idle because there is nothing of its name.
func (v View) Codes() iter.Seq2[Code, int64] {
	return func(yield func(Code, int64) bool) {
		n, now := v.read()
		if n == nil {
			return
		}
		var by node.Codes
		n.SnapshotByCode(now, nil, &by)
		for code, n := range by.All() {
			if !yield(Code{code}, n) {
				return
			}
		}
	}
}
