package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// fromText reads a value as a variable or a flag gives it.
func fromText(to reflect.Value, text string) error {
	t := to.Type()
	composite := !isText(t) && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map)
	if !composite {
		return setScalar(to, text)
	}
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		var wrapped map[string]any
		if err := toml.Unmarshal([]byte("v = "+text), &wrapped); err != nil || len(wrapped) != 1 {
			return errors.New("is not a TOML list or table in one line")
		}
		return fromTOML(to, wrapped["v"])
	}
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	if t.Kind() == reflect.Slice {
		return setEach(to, parts, setScalar)
	}
	entries := map[string]string{}
	for _, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not name=value", part)
		}
		entries[name] = value
	}
	return setEntries(to, entries, setScalar)
}

// fromTOML sets a value to what the decoder gave for it.
func fromTOML(to reflect.Value, from any) error {
	t := to.Type()
	switch from := from.(type) {
	case []any:
		if t.Kind() == reflect.Slice && !isText(t) {
			return setEach(to, from, fromTOML)
		}
	case map[string]any:
		if t.Kind() == reflect.Map && !isText(t) {
			return setEntries(to, from, fromTOML)
		}
	case string:
		if isText(t) || isDuration(t) || t.Kind() == reflect.String {
			return setScalar(to, from)
		}
	case bool:
		if t.Kind() == reflect.Bool {
			return setScalar(to, strconv.FormatBool(from))
		}
	case int64:
		if k := t.Kind(); k != reflect.String && k != reflect.Bool && k != reflect.Slice && k != reflect.Map {
			return setScalar(to, strconv.FormatInt(from, 10))
		}
	case float64:
		if k := t.Kind(); (k == reflect.Float32 || k == reflect.Float64) && !isText(t) {
			return setScalar(to, strconv.FormatFloat(from, 'g', -1, 64))
		}
	}
	return fmt.Errorf("is %s, but %s is wanted", kindOfTOML(from), wanted(t))
}

func setEach[T any](to reflect.Value, from []T, set func(reflect.Value, T) error) error {
	list := reflect.MakeSlice(to.Type(), len(from), len(from))
	for i, element := range from {
		if err := set(list.Index(i), element); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	to.Set(list)
	return nil
}

func setEntries[T any](to reflect.Value, from map[string]T, set func(reflect.Value, T) error) error {
	t := to.Type()
	made := reflect.MakeMapWithSize(t, len(from))
	for _, name := range slices.Sorted(maps.Keys(from)) {
		element := reflect.New(t.Elem()).Elem()
		if err := set(element, from[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		made.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), element)
	}
	to.Set(made)
	return nil
}

func setScalar(to reflect.Value, text string) error {
	t := to.Type()
	var err error
	switch {
	case isText(t):
		fresh := reflect.New(t)
		if err := fresh.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return err
		}
		to.Set(fresh.Elem())
		return nil
	case isDuration(t):
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		to.SetInt(int64(d))
		return nil
	case t.Kind() == reflect.String:
		to.SetString(text)
	case t.Kind() == reflect.Bool:
		switch text {
		case "true", "false":
			to.SetBool(text == "true")
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case to.CanInt():
		var n int64
		if n, err = strconv.ParseInt(text, 10, t.Bits()); err == nil {
			to.SetInt(n)
		}
	case to.CanUint():
		var n uint64
		if n, err = strconv.ParseUint(text, 10, t.Bits()); err == nil {
			to.SetUint(n)
		}
	default:
		var f float64
		if f, err = strconv.ParseFloat(text, t.Bits()); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			to.SetFloat(f)
			return nil
		}
		err = errors.Join(err, strconv.ErrSyntax)
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", text, wanted(t))
	}
	return nil
}

var days = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)

// parseDuration reads time.ParseDuration's form, with days in front: "30s", "1h30m", "7d", "1d12h".
func parseDuration(text string) (time.Duration, error) {
	var whole time.Duration
	rest := text
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n > math.MaxInt64/int(24*time.Hour)-1 {
			return 0, fmt.Errorf("%q is too long", text)
		}
		if whole, rest = time.Duration(n)*24*time.Hour, m[2]; rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || whole > 0 && (d < 0 || d >= 24*time.Hour) {
		return 0, fmt.Errorf("%q is not a time span with a unit like 30s, 5m, 1h30m or 7d", text)
	}
	return whole + d, nil
}

// formatDuration is the shortest text that parseDuration reads back.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// format writes a value as TOML has it, without what addresses say before their hosts.
func format(v reflect.Value) string {
	t := v.Type()
	switch {
	case isText(t):
		if m, ok := v.Interface().(encoding.TextMarshaler); ok {
			if text, err := m.MarshalText(); err == nil {
				return quote(HideUserInfo(string(text)))
			}
		}
		return quote(HideUserInfo(fmt.Sprint(v.Interface())))
	case isDuration(t):
		return quote(formatDuration(time.Duration(v.Int())))
	case t.Kind() == reflect.String:
		return quote(HideUserInfo(v.String()))
	case t.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = format(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case t.Kind() == reflect.Map:
		var parts []string
		for _, name := range v.MapKeys() {
			parts = append(parts, quote(HideUserInfo(name.String()))+" = "+format(v.MapIndex(name)))
		}
		if len(parts) == 0 {
			return "{}"
		}
		slices.Sort(parts)
		return "{ " + strings.Join(parts, ", ") + " }"
	case v.CanFloat():
		text := strconv.FormatFloat(v.Float(), 'f', -1, t.Bits())
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return fmt.Sprint(v.Interface())
}

// quote is a TOML basic string.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u202e':
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func wanted(t reflect.Type) string {
	switch {
	case isText(t):
		return "a text or a number with a unit"
	case isDuration(t):
		return "a time span with a unit like \"30s\""
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map:
		return "a table"
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number in range"
}

func kindOfTOML(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a fraction"
	}
	return "a date or time"
}
