package verb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sampleHint says how to come by a C1 output.
const sampleHint = `make a sample with "proofrack sector seal --sector 2KiB --out DIR", which leaves DIR/c1.json`

// stream is an opened input that is known not to be empty.
type stream struct {
	io.Reader
	name  string
	close func() error
}

// Close closes the file behind the stream, if there is one.
func (s *stream) Close() error { return s.close() }

// openInput opens a file, or standard input for "-". what says what is wanted, such as "C1 output", and hint how to
// come by one. A missing path, a folder, an unreadable file and an empty one are usage failures.
func (a *app) openInput(path, what, hint string) (*stream, error) {
	if path == "-" {
		if onTerminal(a.In) {
			return nil, fail(usage, hint, "standard input is a terminal, not a %s: pipe one into it", what)
		}
		return peeked(a.In, "standard input", what, hint, func() error { return nil })
	}
	if path == "" {
		return nil, fail(usage, hint, "the path of the %s is empty", what)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fail(usage, "name the file in it; or "+hint, "open %s %q: is a folder, not a file", what, path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		hint = "make it readable for this user; or " + hint
	}
	if err != nil {
		return nil, fail(usage, hint, "open %s %q: %w", what, path, reason(err))
	}
	s, err := peeked(file, fmt.Sprintf("%q", path), what, hint, file.Close)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// peeked refuses a stream without a first byte.
func peeked(r io.Reader, name, what, hint string, close func() error) (*stream, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	_, err := buffered.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil, fail(usage, hint, "read %s from %s: it is empty (0 bytes)", what, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from %s: %w", what, name, err)
	}
	return &stream{Reader: buffered, name: name, close: close}, nil
}

// reason strips the call and path that the operating system's errors repeat.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// readAll reads a whole input of at most limit bytes.
func (a *app) readAll(path, what, hint string, limit int64) ([]byte, error) {
	s, err := a.openInput(path, what, hint)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	content, err := io.ReadAll(io.LimitReader(s, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s from %s: %w", what, s.name, err)
	}
	if int64(len(content)) > limit {
		return nil, fail(badInput, hint, "read %s from %s: longer than %d bytes", what, s.name, limit)
	}
	return content, nil
}

// output is a file being written: it appears under its name at commit, or not at all.
type output struct {
	io.Writer
	file *os.File
	path string
}

// createOutput starts a file, or standard output for "-". Close after commit does nothing; without it, the unfinished
// file is removed.
func (a *app) createOutput(path string) (*output, error) {
	if path == "-" {
		if onTerminal(a.Out) {
			return nil, misuse("standard output is a terminal: redirect it, or name a file with --out")
		}
		return &output{Writer: a.Out}, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, misuse("write %q: is a folder, name a file in it", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fail(usage, "the folder must exist and be writable", "write %q: %w", path, reason(err))
	}
	return &output{Writer: file, file: file, path: path}, nil
}

// commit makes the file durable and gives it its name.
func (o *output) commit() error {
	if o.file == nil {
		return nil
	}
	err := errors.Join(o.file.Chmod(0o644), o.file.Sync(), o.file.Close())
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(o.file.Name()))
	}
	o.file = nil
	if err != nil {
		return fmt.Errorf("write %q: %w", o.path, err)
	}
	return nil
}

// Close removes an unfinished file.
func (o *output) Close() error {
	if o.file == nil {
		return nil
	}
	name := o.file.Name()
	err := errors.Join(o.file.Close(), os.Remove(name))
	o.file = nil
	return err
}

// stageOutput writes a whole file, or to standard output, short of giving it its name.
func (a *app) stageOutput(path string, write func(io.Writer) error) (*output, error) {
	o, err := a.createOutput(path)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriterSize(o, 256<<10)
	if err = write(buffered); err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %q: %w", path, reason(err)), o.Close())
	}
	return o, nil
}

// writeOutput writes a whole file, or to standard output.
func (a *app) writeOutput(path string, write func(io.Writer) error) error {
	o, err := a.stageOutput(path, write)
	if err != nil {
		return err
	}
	return o.commit()
}

// makeFolder makes a folder and its parents. undo removes it again if it was not there before and is still empty.
func makeFolder(path string) (undo func(), err error) {
	undo = func() {}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		undo = func() { _ = os.Remove(path) } // not empty: somebody else's files, to be left alone
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fail(usage, "name another folder with --out", "make folder %q: %w", path, reason(err))
	}
	return undo, nil
}
