package main

import (
	"bufio"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// usage is what one kernel takes on one architecture: registers of a thread, bytes of a thread's stack and of spills
// (the larger of stores and loads), bytes of a block's static shared memory.
type usage struct {
	kernel, arch              string
	registers, stack, spilled int
	shared                    int
}

var (
	entryForm  = regexp.MustCompile(`Compiling entry function '([^']+)' for '([^']+)'`)
	propsForm  = regexp.MustCompile(`Function properties for (\S+)`)
	stackForm  = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedForm   = regexp.MustCompile(`Used (\d+) registers`)
	sharedForm = regexp.MustCompile(`(\d+) bytes smem`)
)

// parseLog reads what ptxas printed of all entry functions. Functions that are called count with their entry's.
func parseLog(text string) ([]usage, error) {
	var all []usage
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	inEntry := false
	for lines.Scan() {
		line := lines.Text()
		if m := entryForm.FindStringSubmatch(line); m != nil {
			all = append(all, usage{kernel: m[1], arch: m[2]})
			continue
		}
		if m := propsForm.FindStringSubmatch(line); m != nil {
			inEntry = len(all) > 0 && m[1] == all[len(all)-1].kernel
			continue
		}
		if m := stackForm.FindStringSubmatch(line); m != nil && len(all) > 0 {
			u := &all[len(all)-1]
			if inEntry {
				u.stack = number(m[1])
			}
			u.spilled = max(u.spilled, number(m[2]), number(m[3]))
		}
		if m := usedForm.FindStringSubmatch(line); m != nil {
			if len(all) == 0 {
				return nil, fmt.Errorf("registers of no kernel: %q", line)
			}
			u := &all[len(all)-1]
			u.registers = number(m[1])
			if s := sharedForm.FindStringSubmatch(line); s != nil {
				u.shared = number(s[1])
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, u := range all {
		if u.registers == 0 {
			return nil, fmt.Errorf("no registers of kernel %s for %s", u.kernel, u.arch)
		}
	}
	return all, nil
}

// number reads digits that an expression matched.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1 << 30 // more than any limit
	}
	return n
}

// functor is the first template argument of an entry function, without our namespace; the name itself otherwise.
func functor(name string) string {
	from := strings.IndexByte(name, '<')
	if from < 0 {
		name, _, _ = strings.Cut(name, "(")
		return name
	}
	depth, end := 0, len(name)
	for i := from; i < len(name); i++ {
		switch c := name[i]; {
		case c == '<':
			depth++
		case c == '>':
			depth--
		}
		if depth == 0 || depth == 1 && name[i] == ',' {
			end = i
			break
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(name[from+1:end], "proofrack::", ""), " ", "")
}

// worst keeps, of each kernel, the architecture on which it takes most; the numbers are the highest of all.
func worst(all []usage) []usage {
	at := map[string]int{}
	var out []usage
	for _, u := range all {
		i, ok := at[u.kernel]
		if !ok {
			at[u.kernel] = len(out)
			out = append(out, u)
			continue
		}
		w := &out[i]
		if u.registers > w.registers {
			w.arch = u.arch
		}
		w.registers, w.stack = max(w.registers, u.registers), max(w.stack, u.stack)
		w.spilled, w.shared = max(w.spilled, u.spilled), max(w.shared, u.shared)
	}
	return out
}

// limit is one line of the limits.
type limit struct {
	pattern                   string
	registers, stack, spilled int
}

type limits []limit

// parseLimits reads lines of a pattern and three numbers; lines that begin with # say nothing.
func parseLimits(text string) (limits, error) {
	var all limits
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d has %d fields, not 4", i+1, len(fields))
		}
		if _, err := path.Match(fields[0], ""); err != nil {
			return nil, fmt.Errorf("line %d: pattern %q: %w", i+1, fields[0], err)
		}
		var n [3]int
		for k := range n {
			v, err := strconv.Atoi(fields[k+1])
			if err != nil || v < 0 {
				return nil, fmt.Errorf("line %d: %q is no count", i+1, fields[k+1])
			}
			n[k] = v
		}
		all = append(all, limit{fields[0], n[0], n[1], n[2]})
	}
	return all, nil
}

// exceeded names every kernel that takes more than its limit, or that has none.
func (l limits) exceeded(all []usage) []string {
	var out []string
	for _, u := range all {
		most, ok := l.of(u.kernel)
		if !ok {
			out = append(out, fmt.Sprintf("kernel %s has no limit", u.kernel))
			continue
		}
		for _, c := range []struct {
			what      string
			has, most int
		}{
			{"registers", u.registers, most.registers}, {"bytes of stack", u.stack, most.stack},
			{"bytes of spills", u.spilled, most.spilled},
		} {
			if c.has > c.most {
				out = append(out, fmt.Sprintf("kernel %s takes %d %s on %s, the limit is %d",
					u.kernel, c.has, c.what, u.arch, c.most))
			}
		}
	}
	return out
}

func (l limits) of(kernel string) (found limit, ok bool) {
	for _, m := range l {
		if hit, _ := path.Match(m.pattern, kernel); hit { // patterns were checked
			found, ok = m, true
		}
	}
	return found, ok
}
