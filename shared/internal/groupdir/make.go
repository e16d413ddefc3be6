package groupdir

import (
	"errors"
	"io/fs"
	"os"
)

// Modes of a folder of one's own, and of one that members of a group share; what they make in it is the group's, too.
const (
	ownMode   = 0o700
	groupMode = 0o770 | fs.ModeSetgid
)

// Make makes a folder for this user alone, or for a group unless that is negative. One that is there already is left as
// it is. Errors are those of the operating system.
func Make(path string, group int) error {
	err := os.Mkdir(path, ownMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && group >= 0 {
		err = errors.Join(os.Chown(path, -1, group), os.Chmod(path, groupMode))
	}
	return err
}
