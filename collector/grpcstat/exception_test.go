package grpcstat_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// documented returns the table of codes in doc.go: for each code, whether it is an exception for a server and for a
// client.
func documented(t *testing.T) map[string][2]bool {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "//\tcode ")
	table, _, _ = strings.Cut(table, "\n//\n")
	rows := map[string][2]bool{}
	for i, line := range strings.Split(table, "\n") {
		words := strings.Fields(strings.TrimPrefix(line, "//\t"))
		if i == 0 {
			continue
		}
		for _, word := range words[1:3] {
			if word != "yes" && word != "no" {
				t.Fatalf("row %q", line)
			}
		}
		rows[words[0]] = [2]bool{words[1] == "yes", words[2] == "yes"}
	}
	return rows
}

func TestExceptionsAreAsDocumented(t *testing.T) {
	table := documented(t)
	if len(table) != 17 {
		t.Fatalf("%d rows: %v", len(table), table)
	}
	count := func(is bool) counts {
		if is {
			return counts{pass: 1, exception: 1}
		}
		return counts{pass: 1}
	}
	for code := codes.OK; code <= codes.Unauthenticated+1; code++ {
		row, ok := table[code.String()]
		if !ok && code <= codes.Unauthenticated {
			t.Errorf("%v is not in the table", code)
		}
		if !ok {
			row = [2]bool{true, true} // an invalid code is an exception
		}
		server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
		handle := func(context.Context, string) error { return status.Error(code, "as asked") }
		conn := dial(t, serve(t, handle, inServer(server)...), inClient(client)...)
		for _, method := range methods {
			if err := call(t.Context(), conn, method); status.Code(err) != code {
				t.Errorf("%s: %v, want %v", method, err, code)
			}
		}
		t.Log(code)
		want(t, server, one(count(row[0])))
		want(t, client, one(count(row[1])))
	}
}

// A handler may return any error. The call is counted with the code that gRPC sends for the error, and
// Options.Exception gets the error itself.
func TestHandlerErrorsWithoutStatus(t *testing.T) {
	errOurs := errors.New("ours")
	for _, tc := range []struct {
		err       error
		sent      codes.Code
		exception bool
	}{
		{errors.New("x"), codes.Unknown, true},
		{fmt.Errorf("wrapped: %w", errOurs), codes.Unknown, false}, // Options.Exception returns false for errOurs
		{fmt.Errorf("wrapped: %w", status.Error(codes.NotFound, "x")), codes.NotFound, false},
		{fmt.Errorf("wrapped: %w", status.Error(codes.Internal, "x")), codes.Internal, true},
		{context.Canceled, codes.Canceled, false},
		{fmt.Errorf("wrapped: %w", context.Canceled), codes.Canceled, false},
		{context.DeadlineExceeded, codes.DeadlineExceeded, true},
		{collector.ErrBlocked, codes.Unknown, false}, // ErrBlocked is never an exception
	} {
		var classes []error
		c := newCollector(t, collector.Options{
			Exception:      collector.Ignore(errOurs),
			ExceptionClass: func(err error) string { classes = append(classes, err); return "" },
		})
		conn := dial(t, serve(t, func(context.Context, string) error { return tc.err }, inServer(c)...))
		if err := call(t.Context(), conn, unary); status.Code(err) != tc.sent {
			t.Errorf("%v: the client got %v, want %v", tc.err, err, tc.sent)
		}
		n := counts{pass: 1}
		if tc.exception {
			n.exception = 1
			if len(classes) != 1 || classes[0] != tc.err {
				t.Errorf("%v: the Collector was given %v", tc.err, classes)
			}
		}
		t.Log(tc.err)
		want(t, c, map[string]counts{unary: n})
	}
}
