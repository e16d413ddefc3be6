package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	limits := flag.String("limits", "", "file with the limits")
	flag.Parse()
	bad, err := run(*limits, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "cudalimits:", err)
		os.Exit(2)
	}
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, "cudalimits:", line)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

// run prints the table and gives what is over its limit.
func run(limitsPath string, logs []string) ([]string, error) {
	text, err := os.ReadFile(limitsPath)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	limits, err := parseLimits(string(text))
	if err != nil {
		return nil, fmt.Errorf("read limits %s: %w", limitsPath, err)
	}
	var found []usage
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read compiler's output: %w", err)
		}
		of, err := parseLog(string(text))
		if err != nil {
			return nil, fmt.Errorf("read compiler's output %s: %w", path, err)
		}
		found = append(found, of...)
	}
	if err := nameAll(found); err != nil {
		return nil, err
	}
	found = worst(found)
	printTable(found)
	return limits.exceeded(found), nil
}

// nameAll replaces mangled names.
func nameAll(all []usage) error {
	if len(all) == 0 {
		return nil
	}
	var mangled strings.Builder
	for _, u := range all {
		fmt.Fprintln(&mangled, u.kernel)
	}
	cmd := exec.Command("c++filt")
	cmd.Stdin = strings.NewReader(mangled.String())
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("demangle names with c++filt: %w", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(names) != len(all) {
		return fmt.Errorf("demangle names with c++filt: %d names came back for %d", len(names), len(all))
	}
	for i := range all {
		all[i].kernel = functor(names[i])
	}
	return nil
}

func printTable(all []usage) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprint(w, "kernel\tarchitecture\tregisters\tstack\tspilled\tshared\n")
	slices.SortFunc(all, func(a, b usage) int { return strings.Compare(a.kernel, b.kernel) })
	for _, u := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", u.kernel, u.arch, u.registers, u.stack, u.spilled, u.shared)
	}
}
