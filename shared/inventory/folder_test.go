package inventory_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

// These make the test binary look at a folder in a mount namespace of its own; see played.
const (
	playVariable   = "INVENTORY_TEST_PLAY"
	folderVariable = "INVENTORY_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(procsVariable); how != "" {
		fmt.Println(countProcs(how))
		os.Exit(0)
	}
	if how := os.Getenv(playVariable); how != "" {
		if err := play(how); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play mounts a small tmpfs with the mount options in how and tells what the check says as another user.
func play(how string) error {
	folder := os.Getenv(folderVariable)
	// The mounts end with this process's namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("spill", folder, "tmpfs", 0, how); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	f, err := inventory.NewHost().Folder(folder)
	if err != nil {
		return err
	}
	fmt.Printf("size=%d free=%d kind=%s huge=%s page=%d own=%t mode=%o\n",
		f.Size, f.Free, f.Kind, f.Huge, f.PageSize, f.MountPoint == folder, f.Mode.Perm())
	if os.Getenv("INVENTORY_TEST_USER") != "" {
		if err := unix.Setresuid(1000, 1000, 1000); err != nil {
			return fmt.Errorf("become user 1000: %w", err)
		}
	}
	if err := f.Check(); err != nil {
		fmt.Println("check:", strings.ReplaceAll(err.Error(), folder, "SPILL"))
		fmt.Println("hint:", strings.ReplaceAll(fault.ReportOf("", err).Hint, folder, "SPILL"))
	}
	return nil
}

// played runs play in a mount namespace of its own, as root or in a user namespace where that is not to be had.
func played(t *testing.T, options string, environ ...string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "spill") // other users cannot get below t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(folder) })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playVariable+"="+options, folderVariable+"="+folder)
	cmd.Env = append(cmd.Env, environ...)
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = attributes
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestASmallTmpfsIsMeasured(t *testing.T) {
	t.Parallel()
	out := played(t, "size=4m,mode=0700,huge=never")
	want := "size=4194304 free=4194304 kind=tmpfs huge=never page=4096 own=true mode=700\n"
	if out != want {
		t.Errorf("%s, want %s", out, want)
	}
}

func TestHugePagesOfATmpfs(t *testing.T) {
	t.Parallel()
	size, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
	if err != nil {
		t.Fatalf("this kernel has no huge pages to look at: %v", err)
	}
	out := played(t, "size=64m,mode=0700,huge=always")
	if want := "huge=always page=" + strings.TrimSpace(string(size)); !strings.Contains(out, want) {
		t.Errorf("%s, want %s", out, want)
	}
}

func TestB88StartUpCheckNamesPathModeAndUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("this test becomes another user, which takes root")
	}
	out := played(t, "size=4m,mode=0755", "INVENTORY_TEST_USER=1000")
	for _, want := range []string{
		"folder SPILL: mode 0755, owner 0:0, this process is uid 1000 gid 0 and cannot create files in it: permission denied",
		"hint: give it to the program: install -d -m 0700 -o 1000 -g 0 SPILL",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %s", out, want)
		}
	}
	if out := played(t, "size=4m,mode=0700,uid=1000", "INVENTORY_TEST_USER=1000"); strings.Contains(out, "check:") {
		t.Errorf("its own folder: %s", out)
	}
}

func TestB88EverybodysFolderIsRefused(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[fs.FileMode]bool{
		0o700: false, 0o750: false, 0o770 | fs.ModeSetgid: false, 0o777 | fs.ModeSticky: false, 0o777: true, 0o702: true,
	} {
		folder := t.TempDir()
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		f, err := inventory.NewHost().Folder(folder)
		if err != nil {
			t.Fatal(err)
		}
		if f.Mode != mode || f.UID != os.Getuid() || f.Path != folder {
			t.Errorf("%s: %+v", mode, f)
		}
		err = f.Check()
		if (err != nil) != refused {
			t.Errorf("%s: %v", mode, err)
		}
		if refused && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), folder)) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestFoldersThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	h := inventory.NewHost()
	if _, err := h.Folder(filepath.Join(dir, "none")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if _, err := h.Folder(file); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	f, err := h.Folder(filepath.Join(dir, "link"))
	if err != nil || f.Path != dir || f.Size < bytesize.MiB || f.Free > f.Size || f.MountPoint == "" || f.Kind == "" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestKernelSettingsOverruleAMount(t *testing.T) {
	t.Parallel()
	const thp = "sys/kernel/mm/transparent_hugepage/"
	dir := t.TempDir()
	for setting, c := range map[string]struct {
		option string
		huge   string
		page   bytesize.Bytes
	}{
		"always within_size advise [never] deny force": {"huge=within_size", "within_size", 2 * bytesize.MiB},
		"always within_size advise never [deny] force": {"huge=always", "never", bytesize.Bytes(os.Getpagesize())},
		"always within_size advise never deny [force]": {"size=1g", "always", 2 * bytesize.MiB},
		"always within_size [advise] never deny force": {"huge=advise", "advise", bytesize.Bytes(os.Getpagesize())},
	} {
		h := with(files{
			"proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/vda rw\n" +
				"40 1 0:40 / " + dir + " rw,nosuid shared:1 - tmpfs spill rw," + c.option + "\n",
			thp + "shmem_enabled": setting + "\n", thp + "hpage_pmd_size": "2097152\n",
		})
		f, err := h.Folder(dir)
		if err != nil || f.Kind != "tmpfs" || f.Huge != c.huge || f.PageSize != c.page {
			t.Errorf("%s, %s: %+v, %v", setting, c.option, f, err)
		}
	}
}
