package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// FileBytesMax bounds a configuration file.
const FileBytesMax = 1 * bytesize.MiB

// Sources is where settings come from, the weakest first.
type Sources struct {
	// File is the path of the TOML file, "" for none.
	File string
	// FileOptional makes an absent file the same as none: for a default path that nobody asked for.
	FileOptional bool
	// Environ is the environment as os.Environ gives it.
	Environ []string
	// Foreign are names of variables with our prefix that other parts read, as patterns of path.Match: they are left
	// alone, others that no key has are refused.
	Foreign []string
	// Set are assignments "section.key=value" from the command line, in its order; a later one wins.
	Set []string
}

// FlagSet is the part of pflag.FlagSet, which cobra's commands have, that Bind needs.
type FlagSet interface {
	StringVar(p *string, name, value, usage string)
	StringArrayVar(p *[]string, name string, value []string, usage string)
}

// Bind adds the flags --config and --set, which fill File and Set. The present File is the default.
func (s *Sources) Bind(flags FlagSet) {
	flags.StringVar(&s.File, "config", s.File, "configuration `file` (TOML)")
	flags.StringArrayVar(&s.Set, "set", nil, "set one key, as `section.key=value`; may be repeated, wins over all else")
}

// Load puts settings into the struct that cfg points to, which holds the defaults, and checks them. The error is an
// *Error that lists everything wrong, or, when the file cannot be read, that (NotFound or Invalid); the struct is then
// not to be used.
func Load(cfg any, from Sources) (*Table, error) {
	s := schemaOf(cfg)
	l := loader{schema: s, sources: map[string]string{}}
	text, err := readFile(from)
	if err != nil {
		return nil, err
	}
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, syntaxError(from.File, err)
	}
	l.tree("", file, "file "+from.File)
	l.environ(from.Environ, from.Foreign)
	for _, assignment := range from.Set {
		l.assign(assignment)
	}
	s.validate(&l.report)
	if len(l.report.Problems) > 0 {
		l.sort()
		return nil, &l.report
	}
	return &Table{rows: l.rows()}, nil
}

func readFile(from Sources) ([]byte, error) {
	if from.File == "" {
		return nil, nil
	}
	file, err := os.Open(from.File)
	switch {
	case errors.Is(err, fs.ErrNotExist) && from.FileOptional:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.As(fault.NotFound, fmt.Errorf("read configuration: %w", err))
	case err != nil:
		return nil, fault.As(fault.Invalid, fmt.Errorf("read configuration: %w", err))
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, int64(FileBytesMax)+1))
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("read configuration: %w", err))
	}
	if len(text) > int(FileBytesMax) {
		return nil, fault.New(fault.Invalid, "read configuration %s: longer than %s", from.File, FileBytesMax)
	}
	return text, nil
}

func syntaxError(name string, err error) error {
	if at := new(toml.DecodeError); errors.As(err, &at) {
		row, column := at.Position()
		return fault.New(fault.Invalid, "read configuration %s:%d:%d: %s", name, row, column, at.Error())
	}
	return fault.As(fault.Invalid, fmt.Errorf("read configuration %s: %w", name, err))
}

// loader fills a schema from one source after the other.
type loader struct {
	*schema
	sources map[string]string // key path -> where its value is from
	report  Error
}

func (l *loader) complain(key, source, format string, args ...any) {
	l.report.Problems = append(l.report.Problems, Problem{key, source, hideQuoted(fmt.Sprintf(format, args...))})
}

// tree sets the keys of a decoded file.
func (l *loader) tree(prefix string, values map[string]any, source string) {
	for name, value := range values {
		full := join(prefix, name)
		k, known := l.byPath[full]
		below, isTree := value.(map[string]any)
		switch {
		case strings.Contains(name, "."): // a quoted name that only looks like a path
			l.complain(full, source, "unknown key")
		case known:
			if err := fromTOML(k.value, value); err != nil {
				l.complain(full, source, "%s", err)
				continue
			}
			l.sources[full] = source
		case isTree && l.isTable(full):
			l.tree(full, below, source)
		case l.isTable(full):
			l.complain(full, source, "is %s, but a table is wanted", kindOfTOML(value))
		default:
			l.complain(full, source, "unknown key%s", l.meant(full))
		}
	}
}

func (l *loader) isTable(path string) bool {
	return slices.ContainsFunc(l.tables, func(t table) bool { return t.path == path })
}

func (l *loader) environ(environ, foreign []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, EnvPrefix) || value == "" {
			continue
		}
		source := "environment " + name
		if k, ok := l.byEnv[name]; ok {
			l.set(k, value, source)
			continue
		}
		if !matchesAny(foreign, name) {
			l.complain("", source, "unknown variable%s", l.meantVariable(name))
		}
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		if err != nil {
			panic(fmt.Sprintf("config: pattern %q: %v", pattern, err))
		}
		return ok
	})
}

func (l *loader) assign(assignment string) {
	name, value, ok := strings.Cut(assignment, "=")
	name = strings.TrimSpace(name)
	source := "flag --set " + name
	k, known := l.byPath[name]
	switch {
	case !ok:
		l.complain("", "flag --set", "%q is not section.key=value", assignment)
	case !known:
		l.complain(name, source, "unknown key%s", l.meant(name))
	default:
		l.set(k, value, source)
	}
}

func (l *loader) set(k key, text, source string) {
	if err := fromText(k.value, text); err != nil {
		l.complain(k.path, source, "%s", err)
		return
	}
	l.sources[k.path] = source
}

// sort brings problems into the order of the struct; those of no key come first, of unknown ones last.
func (l *loader) sort() {
	order := map[string]int{}
	for _, t := range l.tables {
		order[t.path] = len(order)
		for _, k := range t.keys {
			order[k.path] = len(order)
		}
	}
	rank := func(p Problem) int {
		if at, ok := order[p.Key]; ok {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(l.report.Problems, func(a, b Problem) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.Error(), b.Error())
	})
}
