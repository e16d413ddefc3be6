package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/fault"
)

// FrameBytesMax bounds the body of a frame.
const FrameBytesMax = 1 << 20

const frameHeadBytes = 4

// conn is one end of the socket pair. Frames may be written from several goroutines and are read by one.
type conn struct {
	socket *net.UnixConn
	write  sync.Mutex
}

// newConn takes over one end of a socket pair.
func newConn(file *os.File) (*conn, error) {
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("open engine socket: %w", err)
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fault.New(fault.Internal, "engine socket is a %T", c), c.Close())
	}
	return &conn{socket: socket}, nil
}

// socketPair makes the two ends.
func socketPair() (mine, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make engine socket: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "engine"), os.NewFile(uintptr(fds[1]), "engine"), nil
}

// send writes one frame; file, when there is one, goes with it and stays the sender's.
func (c *conn) send(body any, file *os.File) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode engine frame: %w", err)
	}
	if len(data) > FrameBytesMax {
		return fault.New(fault.Internal, "engine frame of %d bytes is over the limit of %d", len(data), FrameBytesMax)
	}
	frame := make([]byte, 0, frameHeadBytes+len(data))
	frame = append(binary.LittleEndian.AppendUint32(frame, uint32(len(data))), data...)
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	c.write.Lock()
	defer c.write.Unlock()
	n, _, err := c.socket.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) {
		_, err = c.socket.Write(frame[n:])
	}
	if err != nil {
		return fault.As(fault.Device, fmt.Errorf("write engine frame: %w", err))
	}
	return nil
}

// receive reads one frame into body; the file that came with it, if any, becomes the caller's. io.EOF means that the
// other side is gone.
func (c *conn) receive(body any) (*os.File, error) {
	var head [frameHeadBytes]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, rightsBytes, _, _, err := c.socket.ReadMsgUnix(head[:], rights)
	if err != nil || n == 0 {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("read engine frame: %w", err)
	}
	file, err := fileOf(rights[:rightsBytes])
	if err == nil {
		err = c.rest(head, n, body)
	}
	if err != nil && file != nil {
		err, file = errors.Join(err, file.Close()), nil
	}
	return file, err
}

func (c *conn) rest(head [frameHeadBytes]byte, have int, body any) error {
	if _, err := io.ReadFull(c.socket, head[have:]); err != nil {
		return fmt.Errorf("read engine frame: %w", err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > FrameBytesMax {
		return fault.New(fault.Corrupt, "engine frame of %d bytes is over the limit of %d", length, FrameBytesMax)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(c.socket, data); err != nil {
		return fmt.Errorf("read engine frame: %w", err)
	}
	if err := json.Unmarshal(data, body); err != nil {
		return fault.As(fault.Corrupt, fmt.Errorf("decode engine frame: %w", err))
	}
	return nil
}

// fileOf takes the one file out of a control message.
func fileOf(rights []byte) (*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, fault.New(fault.Corrupt, "engine frame has %d control messages (%v)", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, fault.New(fault.Corrupt, "engine frame has %d files (%v)", len(fds), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "segment"), nil
}
