package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// jsonPlace is a value inside a decoded JSON text: the container that holds it, and its key or index there.
type jsonPlace struct {
	object map[string]any
	list   []any
	key    string
	index  int
}

// get gives the value.
func (p jsonPlace) get() any {
	if p.object != nil {
		return p.object[p.key]
	}
	return p.list[p.index]
}

// set replaces the value.
func (p jsonPlace) set(value any) {
	if p.object != nil {
		p.object[p.key] = value
		return
	}
	p.list[p.index] = value
}

// placeOf walks a path such as "vanilla_proofs.StackedDrg2KiBV1.0.1".
func placeOf(ts *testscript.TestScript, root any, path string) jsonPlace {
	at := jsonPlace{list: []any{root}}
	for step := range strings.SplitSeq(path, ".") {
		switch value := at.get().(type) {
		case map[string]any:
			if _, ok := value[step]; !ok {
				ts.Fatalf("no key %s on the way of %s", step, path)
			}
			at = jsonPlace{object: value, key: step}
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(value) {
				ts.Fatalf("no index %s on the way of %s", step, path)
			}
			at = jsonPlace{list: value, index: index}
		default:
			ts.Fatalf("%s leads into a plain value", path)
		}
	}
	return at
}

// decodeJSON reads a JSON text and keeps its numbers as they are.
func decodeJSON(ts *testscript.TestScript, text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	return value
}

// writeJSON writes a decoded JSON text.
func writeJSON(ts *testscript.TestScript, name string, value any) {
	content, err := json.Marshal(value)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(name), content, 0o600))
}

// scriptJSONSet writes a copy of a JSON file with one value replaced.
func scriptJSONSet(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "jsonset FROM TO PATH JSON")
	root := decodeJSON(ts, ts.ReadFile(args[0]))
	placeOf(ts, root, args[2]).set(decodeJSON(ts, args[3]))
	writeJSON(ts, args[1], root)
}

// scriptJSONDelete writes a copy of a JSON file without one key.
func scriptJSONDelete(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 3, 3, "jsondel FROM TO PATH")
	root := decodeJSON(ts, ts.ReadFile(args[0]))
	place := placeOf(ts, root, args[2])
	delete(place.object, place.key)
	writeJSON(ts, args[1], root)
}

// scriptJSONSwap writes a copy of a JSON file with two values exchanged.
func scriptJSONSwap(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "jsonswap FROM TO PATH PATH")
	root := decodeJSON(ts, ts.ReadFile(args[0]))
	one, other := placeOf(ts, root, args[2]), placeOf(ts, root, args[3])
	value := one.get()
	one.set(other.get())
	other.set(value)
	writeJSON(ts, args[1], root)
}

// scriptEnvelope puts a C1 output into an L2 envelope.
func scriptEnvelope(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "envelope FROM TO NUMBER SIZE")
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"SectorNum":%s,"Phase1Out":"%s","SectorSize":%s}`,
		args[2], base64.StdEncoding.EncodeToString([]byte(ts.ReadFile(args[0]))), args[3])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text.Bytes(), 0o600))
}

// scriptRepeatJSON writes a copy of a JSON file whose list at a path is repeated until the file has a number of bytes.
func scriptRepeatJSON(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "repeatjson FROM TO PATH LENGTH")
	length, err := strconv.Atoi(args[3])
	ts.Check(err)
	root := decodeJSON(ts, ts.ReadFile(args[0]))
	place := placeOf(ts, root, args[2])
	list, ok := place.get().([]any)
	if !ok {
		ts.Fatalf("no list at %s", args[2])
	}
	one, err := json.Marshal(list)
	ts.Check(err)
	var longer []any
	for range 1 + length/len(one) {
		longer = append(longer, list...)
	}
	place.set(longer)
	writeJSON(ts, args[1], root)
}
