package flight

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/ledger"
)

// Stage is how far a buffer's life is.
type Stage uint8

// Stages, in order. A buffer is at exactly one of them.
const (
	Allocated  Stage = iota // it has its memory and is being filled
	Sealed                  // it is complete
	HandedOver              // it belongs to another process
	Mapped                  // it was complete when it came, and is read
	OnDevice                // the device has what it needs of it
	Released                // nobody needs it, the system does not have it back yet
	Gone                    // the system has it back
)

// liveCount is how many stages a buffer can be at while it has memory.
const liveCount = int(Gone)

// unknown is a stage that a later build may have.
const unknown Stage = 255

// stageNames are in order.
func stageNames() [liveCount + 1]string {
	return [...]string{"allocated", "sealed", "handed-over", "mapped", "on-device", "released", "gone"}
}

// String is the stage's name.
func (s Stage) String() string {
	if s <= Gone {
		return stageNames()[s]
	}
	return fmt.Sprintf("stage %d", uint8(s))
}

// MarshalText is the stage's name.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a stage's name. One that this build does not know fails the check of its report and nothing else
// in a message.
func (s *Stage) UnmarshalText(text []byte) error {
	*s = unknown
	for i, name := range stageNames() {
		if name == string(text) {
			*s = Stage(i)
		}
	}
	return nil
}

// classCount is how many classes there are.
const classCount = 6

// classes is the ledger's list; a class's place in it is its index here.
func classes() [classCount]ledger.Class { return [classCount]ledger.Class(ledger.Classes()) }

// indexOf is a class's index, −1 for none.
func indexOf(c ledger.Class) int {
	for i, class := range classes() {
		if class == c {
			return i
		}
	}
	return -1
}
