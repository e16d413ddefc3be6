package verb

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/proofrack/proofrack/cli/internal/footprint"
)

// result is what a verb gives in the end: it marshals to JSON and prints itself for people.
type result interface {
	human(w io.Writer)
}

// emit prints a result on standard output, or on standard error when the output itself went to standard output.
func (a *app) emit(r result, outputTaken bool) error {
	w := a.Out
	if outputTaken {
		w = a.Err
	}
	if !a.json {
		r.human(w)
		return nil
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// warn prints one line on standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "proofrack: warning: %s\n", sentence(fmt.Sprintf(format, args...)))
}

// seconds is a duration as results carry it.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// byteText writes a number of bytes for people, such as "1.33 GiB".
func byteText(n int64) string {
	const units = "KMGT"
	value, unit := float64(n), -1
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit < 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.2f %ciB", value, units[unit])
}

// countText writes a number with separators between thousands.
func countText(n int) string {
	if n < 0 {
		return "-" + countText(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", countText(n/1000), n%1000)
}

// row prints one aligned line of a result.
func row(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-18s %s\n", name, fmt.Sprintf(format, args...))
}

// peakRow prints the peak of resident memory by kind.
func peakRow(w io.Writer, peak footprint.Usage) {
	row(w, "peak RSS", "%s: anonymous %s, file %s, shared %s", byteText(peak.Total), byteText(peak.Anonymous),
		byteText(peak.File), byteText(peak.Shared))
}
