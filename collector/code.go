package collector

import (
	"iter"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/node"
)

// Code is the result code of a call: an HTTP status or a gRPC code. Create it with [HTTPStatus] or [GRPCCode], and pass
// it to [Entry.ExitCode]. [View.Codes] counts the completed calls by code. The zero value means no code.
//
// The error of a call, not its code, decides whether the call is an exception; see [Options].Exception. A metric can
// have the code as a label: there are about ninety codes, so the number of its series stays small.
type Code struct{ n node.Code }

// Package node identifies codes by number, and sorts them by number. The number of an HTTP status is the status. The
// number of a gRPC code is grpcCodes plus the code. otherCode is the number of the code that all other statuses and
// codes share.
const (
	grpcCodes node.Code = 1000
	otherCode node.Code = 2000
)

// OtherCode is the text of the code that all unregistered HTTP statuses and all unknown gRPC codes share; see
// [HTTPStatus] and [GRPCCode].
const OtherCode = "other"

// HTTPStatus returns the code of an HTTP status. Every status in IANA's registry has its own code, including unused and
// temporary entries. Statuses that only nginx logs also have their own code: 444 (the server closed the connection
// without a response), 494 to 498 (errors in headers, certificates or the protocol), and 499 (the client closed the
// connection). All other statuses share the code [OtherCode].
func HTTPStatus(status int) Code {
	for _, r := range registered {
		if r.from <= status && status <= r.to {
			return Code{node.Code(status)}
		}
	}
	return Code{otherCode}
}

// registered holds ranges of HTTP statuses: IANA's registry, and the statuses of nginx. The most common statuses come
// first.
var registered = [...]struct{ from, to int }{
	{200, 208},
	{400, 418},
	{300, 308},
	{500, 508},
	{421, 426},
	{494, 499},
	{100, 104},
	{428, 429},
	{431, 431},
	{444, 444},
	{451, 451},
	{226, 226},
	{510, 511},
}

// GRPCCode returns the code of a gRPC status. The highest status is 16 (Unauthenticated). All numbers above 16 share
// the code [OtherCode].
func GRPCCode(code uint32) Code {
	if code >= uint32(len(grpcNames)) {
		return Code{otherCode}
	}
	return Code{grpcCodes + node.Code(code)}
}

// grpcNames holds the names of the gRPC codes by number, spelled as in grpc-go and in the label grpc_code of
// go-grpc-middleware.
var grpcNames = [...]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
	"DataLoss",
	"Unauthenticated",
}

// GRPCCodeNumber returns the number of the gRPC code with this name. The name may be spelled as in gRPC's
// specification, such as NOT_FOUND, or as in gRPC's Go library, such as NotFound. Case does not matter. For any other
// name, ok is false.
func GRPCCodeNumber(name string) (number uint32, ok bool) {
	number, ok = grpcNumbers[strings.ToUpper(strings.ReplaceAll(name, "_", ""))]
	return number, ok
}

// grpcNumbers holds the numbers of the gRPC codes by their names in upper case, without underscores.
var grpcNumbers = func() map[string]uint32 {
	numbers := map[string]uint32{"CANCELLED": 1} // spelling of gRPC's specification; grpcNames has Canceled
	for n, name := range grpcNames {
		numbers[strings.ToUpper(name)] = uint32(n)
	}
	return numbers
}()

// String returns the text of the code, for use as the value of a label: 404, NotFound, [OtherCode], or an empty string
// for the zero Code.
func (c Code) String() string { return CodeName(c.n) }

// CodeName returns the text of a code in [node.Codes]. It is the text that [Code.String] returns. CodeName is for
// exporters that read [node.Codes] directly.
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

// Codes iterates over the codes of completed calls, with the number of calls for each. The first code is always the
// zero Code, for calls without a code. The HTTP statuses come next, in ascending order, then the gRPC codes in
// ascending order, and then [OtherCode]. All numbers are read at one instant. Their sum equals Total.Complete of a
// [View.Snapshot] at that instant. If the name of the View is not in use, Codes yields nothing.
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
