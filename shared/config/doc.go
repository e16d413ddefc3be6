// Package config loads a role's settings into its Config struct and can say where each value came from.
//
//	--set section.key=value  >  PROOFRACK_SECTION_KEY  >  the role's TOML file  >  the default in the struct
//
// The struct is the schema. A nested struct is a table, a field is a key; its name is the field's in snake_case, or
// that of a `toml:"name"` tag ("-" leaves a field out), and its meaning stands in a `doc:"..."` tag, which the example
// file and its tests demand. An embedded struct without a tag adds its keys to the table it stands in. Values are
// strings, booleans, numbers, durations (time.Duration: "30s", "1h30m", "7d"), whatever implements
// encoding.TextUnmarshaler (bytesize.Bytes: "64GiB"), and lists and string-keyed maps of these. Anything else is a
// mistake of the program and panics.
//
//	in the file        urls = ["nats://a:4222", "nats://b:4222"]     budget = { gpu0 = "20GiB" }
//	elsewhere          PROOFRACK_NATS_URLS=nats://a:4222,nats://b:4222    --set device.budget=gpu0=20GiB,gpu1=8GiB
//
// Elsewhere a value that begins with "[" or "{" is read as TOML, for elements that hold commas. An environment variable
// that is set to nothing counts as not set.
//
// Nothing is ignored: unknown keys, unknown variables with the prefix and values that do not fit are refused, each with
// its full key path, its source and, where one is near, the key that was meant. Whatever in the struct has a method
// Validate() error is asked, at every depth, and all findings come back as one Error. A Validate that finds several
// things returns them joined (errors.Join, or Problems of this package).
//
// Limits: a file is at most FileBytesMax long. Secrets do not belong into values but into files that a value names;
// passwords inside URLs are blanked in everything that is printed.
//
// The package holds no state: what was loaded is fixed until the process ends.
package config
