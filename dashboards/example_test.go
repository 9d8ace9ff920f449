package dashboards_test

import (
	"fmt"
	"io/fs"

	"github.com/windowstat/windowstat/dashboards"
)

// The dashboards, for a program that puts them somewhere itself.
func ExampleFS() {
	names, err := fs.Glob(dashboards.FS(), "*.json")
	fmt.Println(names, err)
	// Output: [overview.json resource.json self.json] <nil>
}
