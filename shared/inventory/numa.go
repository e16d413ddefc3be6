package inventory

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// NUMANode is one memory of a host with the processors next to it.
type NUMANode struct {
	ID     int
	CPUs   []int          // that this process may use; empty for memory without processors of its own
	Memory bytesize.Bytes // 0 for processors without memory
}

// NUMANodes are the nodes of the host in the order of their ids; a host that tells none is one node with everything.
func (h *Host) NUMANodes() ([]NUMANode, error) {
	cpus, err := h.CPUs()
	if err != nil {
		return nil, err
	}
	const folder = "sys/devices/system/node"
	online, err := h.read(folder + "/online")
	if absent(err) {
		memory, err := h.Memory(Margin{})
		if err != nil {
			return nil, err
		}
		return []NUMANode{{ID: 0, CPUs: cpus.Mask, Memory: memory.Total}}, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := parseList(online)
	if err != nil {
		return nil, fmt.Errorf("NUMA nodes online: %w", err)
	}
	var nodes []NUMANode
	for _, id := range ids {
		node := NUMANode{ID: id}
		at := path.Join(folder, fmt.Sprintf("node%d", id))
		list, err := h.read(at + "/cpulist")
		if err != nil {
			return nil, err
		}
		all, err := parseList(list)
		if err != nil {
			return nil, fmt.Errorf("processors of NUMA node %d: %w", id, err)
		}
		for _, cpu := range all {
			if slices.Contains(cpus.Mask, cpu) {
				node.CPUs = append(node.CPUs, cpu)
			}
		}
		info, err := h.read(at + "/meminfo")
		if err != nil {
			return nil, err
		}
		kB, ok := kilobytes(strings.ReplaceAll(info, fmt.Sprintf("Node %d ", id), ""), "MemTotal")
		if !ok {
			return nil, fault.New(fault.Corrupt, "%s/meminfo has no MemTotal in kB", at)
		}
		node.Memory = bytesize.Bytes(kB) * bytesize.KiB
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// NUMAUnknown stands for the node of a device that tells none.
const NUMAUnknown = -1

// PCINode is the NUMA node next to a PCI device, NUMAUnknown when the host does not say. The address may be in the long
// form of NVML ("00000000:17:00.0").
func (h *Host) PCINode(address string) (int, error) {
	address = strings.ToLower(address)
	if domain, rest, ok := strings.Cut(address, ":"); ok && len(domain) == 8 {
		address = domain[4:] + ":" + rest
	}
	if !pciAddress.MatchString(address) {
		return NUMAUnknown, fault.New(fault.Invalid, "PCI address %.40q", address)
	}
	text, err := h.read("sys/bus/pci/devices/" + address + "/numa_node")
	if absent(err) {
		return NUMAUnknown, nil
	}
	if err != nil {
		return NUMAUnknown, err
	}
	node, err := strconv.Atoi(text)
	if err != nil || node < NUMAUnknown {
		return NUMAUnknown, fault.New(fault.Corrupt, "NUMA node %.40q of PCI device %s", text, address)
	}
	return node, nil
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
