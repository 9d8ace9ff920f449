package push

import (
	"net/http"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Format is how seconds are sent: [RemoteWrite], [VictoriaMetrics], [OTLP] or [OTLPDelta]. It is implemented in this package only, a
// file for each.
type Format interface {
	// name is the value of the label way in the self-metrics, and part of the name of the file of positions.
	name() string
	// prepare sets the headers and parameters of a request.
	prepare(*http.Request)
	// encoder makes an encoder of requests, which is used by one goroutine at a time.
	encoder() encoder
	// temporality is which sums, and which histograms if there are any, are sent beside the values of seconds.
	temporality() (sums, histograms seconds.Temporality)
	// apart reports whether a family has requests of its own, because some servers refuse the whole request that it is in.
	apart(*table.Family) bool
	// refused returns how many samples an accepting response says that the server did not take, and its words about the request.
	refused(body []byte) (samples int64, words string)
}

// plain is what formats have in common that send values and histograms of seconds, and whose requests are accepted or refused as a whole.
type plain struct{}

func (plain) temporality() (sums, histograms seconds.Temporality) {
	return seconds.None, seconds.Single
}
func (plain) apart(*table.Family) bool       { return false }
func (plain) refused([]byte) (int64, string) { return 0, "" }

// encoder encodes the bodies of requests.
type encoder interface {
	seconds.Sink
	// Samples returns the number of samples in the body so far.
	Samples() int
	// Body returns the finished body. It is valid until Reset.
	Body() ([]byte, error)
	// Reset starts a new body.
	Reset()
}

// verdict is what an attempt says about a request. From accepted on it is settled.
type verdict int

const (
	retry       verdict = iota // it is sent again, and the server does not have it
	doubtful                   // it is sent again, and the server may have it
	unreachable                // it is sent again; the URL or the credentials may be wrong
	accepted                   // the server has it
	refused                    // the server will never accept it
	unconfirmed                // the server may have it from an earlier attempt, and will not say
	noHistogram                // it is sent again without histograms, which the server does not take
)
