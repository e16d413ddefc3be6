package config

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Row is one setting as it is in force.
type Row struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as in the file; what URLs say before their hosts is blanked (HideUserInfo)
	Source string `json:"source"` // "default", "file PATH", "environment NAME" or "flag --set KEY"
}

// Table is a loaded configuration for people to look at: what is in force, and why.
type Table struct{ rows []Row }

// Rows are all settings in the order of the struct.
func (t *Table) Rows() []Row { return append([]Row(nil), t.rows...) }

// Print writes the table in three columns.
func (t *Table) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tSOURCE") //nolint:errcheck // the writer keeps the first error for Flush
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, r.Value, r.Source) //nolint:errcheck // as above
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return nil
}

func (l *loader) rows() []Row {
	var rows []Row
	for _, t := range l.tables {
		for _, k := range t.keys {
			source := l.sources[k.path]
			if source == "" {
				source = "default"
			}
			rows = append(rows, Row{Key: k.path, Value: format(k.value), Source: source})
		}
	}
	return rows
}
