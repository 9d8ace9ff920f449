// Package limitfile reads the limits of a Collector from a file, and reads them again when it changes.
//
//	limits:
//	  - resource: GET /search     # a name
//	    qps: 100
//	  - resource: /admin/*        # a pattern: * stands for any run of characters, none and / included
//	    origin: mobile            # the calls of one origin; without it, of all together
//	    qps: 20
//	    concurrency: 5
//	    strict: true              # in any second, not only in those that begin when a bucket does
//	  - resource: GET /search
//	    qps: 80
//	    dry_run: true             # refuses nothing, and counts what it would refuse
//
// The file is YAML, and so may be JSON. Each entry has a resource, and qps or concurrency or both, whole numbers of 0 or
// more; 0 refuses every call. An origin is one name; where there is none, all origins share the limit. See
// [collector.Limit] for what they mean.
//
// A name with ": " in it, or with a * in front, needs quotes: "db: load user", "*".
//
// A file with a mistake is refused whole, with its mistakes and their lines in the error, and the limits that were
// in force stay. So is one without a list: limits are switched off by an empty one, not by an empty file.
package limitfile
