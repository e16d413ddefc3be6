package inventory

import (
	"path"
	"slices"
	"strings"
)

// group is one control group that this process is in: the folders from its own up to the top of what is mounted here.
type group struct {
	unified bool
	folders []string // "sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"
}

// groups are the control groups that bear on a controller ("memory", "cpu"): that of the unified layout and, on hosts
// that have it, that of the controller's own tree. No cgroup files at all is none.
func (h *Host) groups(controller string) ([]group, error) {
	membership, err := h.read("proc/self/cgroup")
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mounts, err := h.mounts()
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []group
	for line := range strings.SplitSeq(membership, "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		unified := fields[0] == "0" && fields[1] == ""
		if !unified && !slices.Contains(strings.Split(fields[1], ","), controller) {
			continue
		}
		for _, m := range mounts {
			if unified && m.kind == "cgroup2" ||
				!unified && m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), controller) {
				all = append(all, group{unified, foldersUp(m, fields[2])})
				break
			}
		}
	}
	return all, nil
}

// memberBytesMax bounds the path of a control group, as the kernel does.
const memberBytesMax = 4096

// foldersUp lists the folders of a control group and of all above it, as far as the mount shows them.
func foldersUp(m mount, member string) []string {
	// In a container the mount often shows only the container's part, while the membership is told from the host's
	// root (no cgroup namespace), or from a root elsewhere ("/../x"). Then the mount point is all that can be seen.
	below, inside := strings.CutPrefix(path.Clean("/"+member), strings.TrimSuffix(m.root, "/"))
	if !inside || below != "" && below[0] != '/' || strings.HasPrefix(member, "/..") || len(member) > memberBytesMax {
		below = ""
	}
	top := path.Clean(strings.TrimPrefix(m.point, "/")) // "." for the root folder
	var all []string
	for at := path.Join(top, below); ; at = path.Dir(at) {
		all = append(all, at)
		if at == top {
			return all
		}
	}
}

// mount is a line of /proc/self/mountinfo.
type mount struct {
	root, point, kind string
	options           string // of the mount and of the file system, joined by a comma
}

func (h *Host) mounts() ([]mount, error) {
	text, err := h.read("proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mount
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+4 {
			continue
		}
		all = append(all, mount{
			root: unescape(fields[3]), point: unescape(fields[4]), kind: fields[dash+1],
			options: fields[5] + "," + fields[dash+3],
		})
	}
	return all, nil
}

// unescape takes back what mountinfo does to blanks and backslashes.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
