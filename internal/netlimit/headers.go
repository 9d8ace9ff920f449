package netlimit

import (
	"net/http"
	"reflect"
)

// LimitHeaderCount sets the maximum number of headers of a request, if the program was built with Go 1.27 or later;
// before, net/http has no such limit. The time that net/http takes for a request depends on their number: 15 KB in
// 2,500 headers take 3.5 ms, and a usual request takes 0.15 ms. So does the memory.
func LimitHeaderCount(s *http.Server, n int) {
	if count := reflect.ValueOf(s).Elem().FieldByName("MaxHeaderValueCount"); count.IsValid() {
		count.SetInt(int64(n))
	}
}
