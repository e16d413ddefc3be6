package verb

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// sizeFlag is a published sector size on the command line: "32GiB", or its number of bytes.
type sizeFlag struct{ size sdr.SectorSize }

// Set parses the flag.
func (f *sizeFlag) Set(text string) error {
	size, err := parseSize(text)
	if err != nil {
		return err
	}
	f.size = size
	return nil
}

// String is the size as names write it.
func (f *sizeFlag) String() string {
	if f.size == 0 {
		return ""
	}
	return f.size.String()
}

// Type names the flag's values in help texts.
func (f *sizeFlag) Type() string { return "SIZE" }

// parseSize reads a published sector size, written as a name or as a number of bytes.
func parseSize(text string) (sdr.SectorSize, error) {
	size, err := sdr.ParseSectorSize(text)
	if err != nil {
		bytes, numberErr := strconv.ParseUint(text, 10, 64)
		if numberErr != nil {
			return 0, unsupportedSize(text)
		}
		size = sdr.SectorSize(bytes)
	}
	if !size.Valid() || !size.Published() {
		return 0, unsupportedSize(text)
	}
	return size, nil
}

// unsupportedSize names the sizes there are.
func unsupportedSize(text string) error {
	var names []string
	for _, s := range sdr.PublishedSizes() {
		names = append(names, s.String())
	}
	return misuse("unsupported sector size %q: supported are %s", text, strings.Join(names, ", "))
}

// proofFamily is a way to derive challenges, and the registered proof that goes with it.
type proofFamily struct {
	name    string
	version sdr.APIVersion
	family  sdr.Family
}

// proofFamilies are the values of --proof.
func proofFamilies() []proofFamily {
	return []proofFamily{
		{"v1", sdr.APIVersion1_0, sdr.Interactive},
		{"v1_1", sdr.APIVersion1_1, sdr.Interactive},
		{"synthetic", sdr.APIVersion1_2, sdr.Synthetic},
		{"non-interactive", sdr.APIVersion1_2, sdr.NonInteractive},
	}
}

// familyFlag is the value of --proof.
type familyFlag struct{ proofFamily }

// Set parses the flag.
func (f *familyFlag) Set(text string) error {
	var names []string
	for _, known := range proofFamilies() {
		if known.name == text {
			f.proofFamily = known
			return nil
		}
		names = append(names, known.name)
	}
	return misuse("unknown proof family %q: there are %s", text, strings.Join(names, ", "))
}

// String is the family's name.
func (f *familyFlag) String() string { return f.name }

// Type names the flag's values in help texts.
func (f *familyFlag) Type() string { return "FAMILY" }

// minerFlag is a miner actor: "1000", "f01000" or "t01000".
type minerFlag struct {
	id  uint64
	set bool
}

// Set parses the flag.
func (f *minerFlag) Set(text string) error {
	id, err := sdr.ParseMiner(text)
	if err != nil {
		return misuse("%q is no miner: write its actor id as 1000, f01000 or t01000", text)
	}
	f.id, f.set = id, true
	return nil
}

// String is the actor id.
func (f *minerFlag) String() string {
	if !f.set {
		return ""
	}
	return strconv.FormatUint(f.id, 10)
}

// Type names the flag's values in help texts.
func (f *minerFlag) Type() string { return "MINER" }

// sectorNumberFlag is a sector number.
type sectorNumberFlag struct {
	number uint64
	set    bool
}

// Set parses the flag.
func (f *sectorNumberFlag) Set(text string) error {
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return misuse("%q is no sector number: it is a number from 0 to 2^63-1", text)
	}
	f.number, f.set = number, true
	return nil
}

// String is the number.
func (f *sectorNumberFlag) String() string {
	if !f.set {
		return ""
	}
	return strconv.FormatUint(f.number, 10)
}

// Type names the flag's values in help texts.
func (f *sectorNumberFlag) Type() string { return "NUMBER" }

// spanFlag is a time span above zero.
type spanFlag struct{ to *time.Duration }

// spanVar defines a flag for a time span above zero. Its default may be zero, which stands for none.
func spanVar(c *cobra.Command, to *time.Duration, name string, standard time.Duration, usage string) {
	*to = standard
	c.Flags().Var(&spanFlag{to}, name, usage)
}

// Set parses the flag.
func (f *spanFlag) Set(text string) error {
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return misuse("%q is no time span above zero: write one such as 30s, 5m or 1h30m", text)
	}
	*f.to = span
	return nil
}

// String is the span; none is no text.
func (f *spanFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return ""
	}
	return f.to.String()
}

// Type names the flag's values in help texts.
func (f *spanFlag) Type() string { return "TIME" }
