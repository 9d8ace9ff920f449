package main

import (
	"bytes"
	"debug/buildinfo"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom returns the software bill of materials of a binary, in CycloneDX 1.6 as JSON: the modules that are linked into
// the binary, with their checksums, and the standard library. The list is derived from the build information of the
// binary, so it is exact. The serial number is omitted, so equal binaries have equal lists.
func sbom(info *buildinfo.BuildInfo, version string, at time.Time) ([]byte, error) {
	list := cyclonedx.NewBOM()
	component := func(kind cyclonedx.ComponentType, m *debug.Module) cyclonedx.Component {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + url.PathEscape(m.Version)
		c := cyclonedx.Component{BOMRef: purl, Type: kind, Name: m.Path, Version: m.Version, PackageURL: purl}
		if m.Sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
		}
		return c
	}
	main := component(cyclonedx.ComponentTypeApplication, &debug.Module{Path: info.Main.Path, Version: version})
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	var linked []cyclonedx.Component
	var refs []string
	for _, m := range append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...) {
		c := component(cyclonedx.ComponentTypeLibrary, m)
		linked, refs = append(linked, c), append(refs, c.BOMRef)
	}
	list.Metadata = &cyclonedx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &main}
	list.Components = &linked
	list.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(list)
	return b.Bytes(), err
}
