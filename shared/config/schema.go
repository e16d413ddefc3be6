package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// EnvPrefix begins the name of every environment variable that is ours.
const EnvPrefix = "PROOFRACK_"

// key is one setting of a schema.
type key struct {
	path  string // "nats.creds_file"
	doc   string
	value reflect.Value // the field itself, settable
}

// env is the name of the environment variable of a key.
func (k key) env() string { return EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_")) }

// table is one struct of a schema: the role's own (path "") or a nested one.
type table struct {
	path  string
	doc   string
	value reflect.Value
	keys  []key
}

// schema is what a Config struct says: its tables in the order of the fields, the keys of each before its sub-tables.
type schema struct {
	tables []table
	byPath map[string]key
	byEnv  map[string]key
}

// schemaOf reads a struct. It panics when the struct cannot be a configuration: that is the program's mistake.
func schemaOf(cfg any) *schema {
	v := reflect.ValueOf(cfg)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: %T is not a pointer to a struct", cfg))
	}
	s := &schema{byPath: map[string]key{}, byEnv: map[string]key{}}
	s.addTable("", "", v.Elem())
	for _, t := range s.tables {
		for _, k := range t.keys {
			if other, twice := s.byEnv[k.env()]; twice {
				panic(fmt.Sprintf("config: %T: keys %s and %s share the variable %s", cfg, other.path, k.path, k.env()))
			}
			s.byPath[k.path], s.byEnv[k.env()] = k, k
		}
	}
	return s
}

func (s *schema) addTable(path, doc string, v reflect.Value) {
	at := len(s.tables)
	s.tables = append(s.tables, table{path: path, doc: doc, value: v})
	s.addFields(at, v)
}

func (s *schema) addFields(at int, v reflect.Value) {
	path := s.tables[at].path
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name := field.Tag.Get("toml")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			s.addFields(at, value)
			continue
		case name == "":
			name = snake(field.Name)
		}
		if path != "" {
			name = path + "." + name
		}
		if isTable(field.Type) {
			s.addTable(name, field.Tag.Get("doc"), value)
			continue
		}
		if !isValue(field.Type) {
			panic(fmt.Sprintf("config: %s: a field of type %s cannot be a setting", name, field.Type))
		}
		s.tables[at].keys = append(s.tables[at].keys, key{path: name, doc: field.Tag.Get("doc"), value: value})
	}
}

// paths are all keys, in the order of the struct.
func (s *schema) paths() []string {
	var all []string
	for _, t := range s.tables {
		for _, k := range t.keys {
			all = append(all, k.path)
		}
	}
	return all
}

func isTable(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	default:
		return isText(t)
	}
}

func isValue(t reflect.Type) bool {
	switch {
	case isText(t):
		return true
	case t.Kind() == reflect.Slice:
		return isScalar(t.Elem())
	case t.Kind() == reflect.Map:
		return t.Key().Kind() == reflect.String && isScalar(t.Elem())
	}
	return isScalar(t)
}

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[time.Duration]() }

// snake turns a field's name into a key's: SpillBytesMax -> spill_bytes_max, SRSFile -> srs_file, URLs -> urls.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, c := range letters {
		if i > 0 && unicode.IsUpper(c) {
			afterLower := !unicode.IsUpper(letters[i-1])
			beforeWord := i+1 < len(letters) && unicode.IsLower(letters[i+1]) && string(letters[i+1:]) != "s"
			if afterLower || beforeWord {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
