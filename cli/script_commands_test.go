package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are the commands that scripts have beside the usual ones.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"fails":    scriptFails,
		"edit":     scriptEdit,
		"patch":    scriptPatch,
		"xorbyte":  scriptXORByte,
		"truncate": scriptTruncate,
		"empty":    scriptEmpty,
		"repeat":   scriptRepeat,
		"jsonset":  scriptJSONSet,
		"jsondel":  scriptJSONDelete,
		"jsonswap": scriptJSONSwap,
		"envelope": scriptEnvelope,
		"await":    scriptAwait,
		"pad":      scriptPad,

		"repeatjson": scriptRepeatJSON,

		"testparams": scriptTestParams,
		"exactkey":   scriptExactKey,
		"unhex":      scriptUnhex,
	}
}

// usageOf ends the script unless a command was called with the right number of arguments.
func usageOf(ts *testscript.TestScript, negated bool, args []string, least, most int, usage string) {
	if negated || len(args) < least || len(args) > most {
		ts.Fatalf("usage: %s", usage)
	}
}

// scriptFails runs "fails CODE PROGRAM ARG…" and wants that exit code, one line of error on standard error, and
// nothing
// on standard output.
func scriptFails(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 2, 64, "fails CODE PROGRAM [ARG…]")
	err := ts.Exec(args[1], args[2:]...)
	stderr := ts.ReadFile("stderr")
	if err == nil {
		ts.Fatalf("succeeded, want exit status %s", args[0])
	}
	if want := "exit status " + args[0]; err.Error() != want {
		ts.Fatalf("ended with %v, want %s; it said: %s", err, want, stderr)
	}
	errorLines := 0
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "proofrack: warning: ") {
			errorLines++
		}
	}
	if errorLines != 1 || strings.Contains(stderr, "goroutine ") {
		ts.Fatalf("standard error is not one line:\n%s", stderr)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("wrote to standard output: %.100q", out)
	}
}

// scriptEdit replaces the first occurrence of a text, which must be there, and writes the result to another file.
func scriptEdit(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "edit FROM TO OLD NEW")
	content := ts.ReadFile(args[0])
	if !strings.Contains(content, args[2]) {
		ts.Fatalf("%s does not hold %q", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Replace(content, args[2], args[3], 1)), 0o600))
}

// scriptPatch puts bytes, given in hex, at an offset of a copy of a file.
func scriptPatch(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 4, 4, "patch FROM TO OFFSET HEX")
	content := []byte(ts.ReadFile(args[0]))
	offset, err := strconv.Atoi(args[2])
	ts.Check(err)
	value, err := hex.DecodeString(args[3])
	ts.Check(err)
	if offset+len(value) > len(content) {
		ts.Fatalf("%s has only %d bytes", args[0], len(content))
	}
	copy(content[offset:], value)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o600))
}

// scriptXORByte flips the lowest bit of one byte of a file in place; "half" stands for the byte at half its length.
func scriptXORByte(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 2, 2, "xorbyte FILE OFFSET|half")
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	defer file.Close()
	info, err := file.Stat()
	ts.Check(err)
	offset := info.Size() / 2
	if args[1] != "half" {
		offset, err = strconv.ParseInt(args[1], 10, 64)
		ts.Check(err)
	}
	var b [1]byte
	_, err = file.ReadAt(b[:], offset)
	ts.Check(err)
	b[0] ^= 1
	_, err = file.WriteAt(b[:], offset)
	ts.Check(err)
}

// scriptTruncate shortens a file in place to a length, or by one that starts with "-".
func scriptTruncate(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 2, 2, "truncate FILE LENGTH")
	length, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	name := ts.MkAbs(args[0])
	if length < 0 {
		info, err := os.Stat(name)
		ts.Check(err)
		length += info.Size()
	}
	ts.Check(os.Truncate(name, length))
}

// scriptEmpty wants a folder without any entry, hidden ones included, or no folder at all.
func scriptEmpty(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 1, 1, "empty DIR")
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	if os.IsNotExist(err) {
		return
	}
	ts.Check(err)
	for _, e := range entries {
		ts.Fatalf("%s holds %s", args[0], e.Name())
	}
}

// scriptRepeat writes a file that repeats a text.
func scriptRepeat(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 3, 3, "repeat FILE TEXT COUNT")
	count, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte(args[1]), count), 0o600))
}

// scriptPad writes a JSON object with blanks after its first brace, so that it has a number of bytes.
func scriptPad(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 3, 3, "pad FROM TO LENGTH")
	text := ts.ReadFile(args[0])
	length, err := strconv.Atoi(args[2])
	ts.Check(err)
	blanks := strings.Repeat(" ", length-len(text))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:1]+blanks+text[1:]), 0o600))
}

// scriptUnhex turns a file of hex digits into bytes.
func scriptUnhex(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 2, 2, "unhex FROM TO")
	content, err := hex.DecodeString(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o600))
}

// scriptAwait runs "await FILE VARIABLE": it waits until a program in the background has written the file, and gives
// the
// variable its text.
func scriptAwait(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 2, 2, "await FILE VARIABLE")
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			ts.Setenv(args[1], strings.TrimSpace(string(text)))
			return
		}
	}
	ts.Fatalf("%s did not come", args[0])
}
