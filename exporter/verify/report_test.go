package verify

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// A report with any value of a database can be encoded as JSON.
func TestRegressionInfiniteValuesHadNoJSON(t *testing.T) {
	for v, want := range map[float64]string{3: "3", 0.5: "0.5", math.Inf(1): `"+Inf"`, math.Inf(-1): `"-Inf"`} {
		b, err := json.Marshal(Difference{time.Unix(0, 0).UTC(), 1, Value(v)})
		if full := `{"at":"1970-01-01T00:00:00Z","log":1,"database":` + want + "}"; err != nil || string(b) != full {
			t.Errorf("%v: %s, %v; want %s", v, b, err, full)
		}
	}
}
