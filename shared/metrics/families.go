package metrics

import "slices"

// Name is a metric's name.
type Name string

// Type is what a metric's values are.
type Type uint8

// Types.
const (
	Gauge     Type = iota // a number as it is now
	Counter               // a number that only rises, until its process ends
	Histogram             // how many values were in each range
)

// String is the type's name.
func (t Type) String() string { return [...]string{"gauge", "counter", "histogram"}[t] }

// Of says whose numbers a family has.
type Of uint8

// Whose.
const (
	OfProcess Of = iota // the process's own, in every role
	OfWorkers           // of both workers of a host
	OfGPU               // of the GPU worker
	OfNodes             // of the rack: the leading coordinator alone shows them
	OfGateway           // of a gateway
)

// String says it for people.
func (o Of) String() string {
	return [...]string{"every process", "both workers", "GPU worker", "leading coordinator", "gateway"}[o]
}

// Family is one metric.
type Family struct {
	Name   Name
	Type   Type
	Of     Of
	Labels []string // beside role and, of workers, node
	Help   string
	// Sometimes says when it is there, where that is not always.
	Sometimes string
}

// Every process.
const (
	Build         Name = "c2_build_info"
	SourceUp      Name = "c2_metrics_source_up"
	LeftOut       Name = "c2_metrics_left_out"
	Ready         Name = "c2_ready"
	BusConnected  Name = "c2_nats_connected"
	BusDropped    Name = "c2_nats_dropped_total"
	FlightBytes   Name = "c2_flight_bytes"
	FlightPieces  Name = "c2_flight_pieces"
	FlightHigh    Name = "c2_flight_high_bytes"
	FlightGone    Name = "c2_flight_gone_bytes_total"
	FlightLag     Name = "c2_flight_lag_seconds"
	FlightProofs  Name = "c2_flight_proofs"
	FlightRSS     Name = "c2_flight_resident_bytes"
	FlightBeyond  Name = "c2_flight_beyond_bytes"
	FlightDefects Name = "c2_flight_defects_total"
	CPUSeconds    Name = "c2_cpu_seconds_total"
	TraceSpans    Name = "c2_trace_spans_total"
	TraceFailures Name = "c2_trace_export_failures_total"
	FencesRefused Name = "c2_fences_refused_total"
)

// Workers.
const (
	WorkerRunning  Name = "c2_worker_attempts"
	WorkerUnsent   Name = "c2_worker_results_unsent"
	WorkerOutcomes Name = "c2_worker_attempts_total"
	DeviceMemory   Name = "c2_gpu_memory_bytes"
	DeviceBusy     Name = "c2_gpu_busy_ratio"
	DevicePower    Name = "c2_gpu_power_watts"
	DeviceEnergy   Name = "c2_gpu_energy_watt_hours_total"
	DeviceDriver   Name = "c2_gpu_healthy"
	DeviceHealthy  Name = "c2_device_healthy"
	DeviceAsset    Name = "c2_device_circuit_ready"
	AssetLoads     Name = "c2_asset_loads_total"
	AssetLoadTime  Name = "c2_asset_load_seconds"
	AssetEvictions Name = "c2_asset_evictions_total"
	WrongProofs    Name = "c2_device_wrong_proofs_total"
	EngineStarts   Name = "c2_engine_starts_total"
)

// The rack, as the leading coordinator sees it.
const (
	Leader         Name = "c2_leader"
	Term           Name = "c2_leader_term"
	RackReady      Name = "c2_rack_ready"
	RackHalted     Name = "c2_rack_halted"
	IntakePaused   Name = "c2_intake_paused"
	LedgerUp       Name = "c2_ledger_up"
	LedgerAnswer   Name = "c2_ledger_answer_seconds"
	Jobs           Name = "c2_jobs"
	Partitions     Name = "c2_partitions"
	Waiting        Name = "c2_partitions_waiting"
	WaitingBytes   Name = "c2_waiting_bytes"
	MissingBytes   Name = "c2_missing_bytes"
	QueueOldest    Name = "c2_queue_oldest_seconds"
	JobsEnded      Name = "c2_jobs_ended_total"
	JobSeconds     Name = "c2_job_seconds"
	StageSeconds   Name = "c2_stage_seconds"
	AttemptsEnded  Name = "c2_attempts_total"
	Retries        Name = "c2_retries_total"
	BadProofs      Name = "c2_verification_failures_total"
	DeviceFaults   Name = "c2_device_faults_total"
	ResultsLate    Name = "c2_results_late_total"
	Capacity       Name = "c2_pool_capacity_bytes"
	Booked         Name = "c2_pool_booked_bytes"
	Declared       Name = "c2_pool_declared_bytes"
	Measured       Name = "c2_class_measured_bytes"
	SizeBytes      Name = "c2_size_bytes"
	DriftEvents    Name = "c2_size_drift_events_total"
	SizeDrift      Name = "c2_size_drift"
	NodePresent    Name = "c2_node_present"
	NodeReady      Name = "c2_node_ready"
	NodeDrained    Name = "c2_node_drained"
	NodeBeatAge    Name = "c2_node_beat_age_seconds"
	NodeClock      Name = "c2_node_clock_offset_seconds"
	NodeBookOpen   Name = "c2_node_book_open"
	NodeLeaks      Name = "c2_node_leaks"
	NodeDevice     Name = "c2_node_device_usable"
	NodeQuarantine Name = "c2_node_device_quarantined"
	NodeAssetUsers Name = "c2_node_asset_users"
)

// Families are all metrics.
func Families() []Family {
	return slices.Concat(processFamilies(), workerFamilies(), rackFamilies(), gatewayFamilies())
}

func processFamilies() []Family {
	return []Family{
		{Build, Gauge, OfProcess, []string{"build"}, "1, with the program's build.", ""},
		{SourceUp, Gauge, OfProcess, []string{"source"}, "1 when a part of these metrics could be asked in time.", ""},
		{LeftOut, Gauge, OfProcess, nil, "Series that this page leaves out because there are too many.", ""},
		{Ready, Gauge, OfProcess, []string{"check"},
			"1 when a check of /readyz passes: nats, redis, parameters, work and others.", ""},
		{BusConnected, Gauge, OfProcess, nil, "1 while the process is connected to NATS.", ""},
		{BusDropped, Counter, OfProcess, nil, "Messages from NATS dropped because the process was too slow.", ""},
		{FlightBytes, Gauge, OfProcess, []string{"process", "class", "stage"},
			"Bytes of large buffers, by class and stage of their life.", "once the class was used"},
		{FlightPieces, Gauge, OfProcess, []string{"process", "class", "stage"}, "Large buffers.",
			"once the class was used"},
		{FlightHigh, Gauge, OfProcess, []string{"process", "class"}, "Most bytes of a class that there ever were.",
			"once the class was used"},
		{FlightGone, Counter, OfProcess, []string{"process", "class"}, "Bytes of buffers that are really gone.",
			"once the class was used"},
		{FlightLag, Histogram, OfProcess, []string{"process", "class"},
			"Time from the release of a buffer until its memory was really gone, s. The sum is not kept.",
			"once a buffer of the class is gone"},
		{FlightProofs, Gauge, OfProcess, []string{"process", "state"},
			"Proofs in an engine: pending (started, not finished) and waiting.", ""},
		{FlightRSS, Gauge, OfProcess, []string{"process"}, "Resident memory of the process.", ""},
		{FlightBeyond, Gauge, OfProcess, []string{"process"},
			"Resident memory that is in no class of buffers: code, allocator, libraries.", ""},
		{FlightDefects, Counter, OfProcess, []string{"process"},
			"Changes of buffers that cannot be; 0 in a sound build.", ""},
		{CPUSeconds, Counter, OfProcess, []string{"of"},
			"Processor time, of the process itself and of the engines below it, s.", "with up: of one role only"},
		{TraceSpans, Counter, OfProcess, []string{"outcome"}, "Spans that were sent to the collector, or dropped.", ""},
		{TraceFailures, Counter, OfProcess, nil, "Exports of spans that the collector did not take.", ""},
		{FencesRefused, Counter, OfProcess, nil, "Work of stale attempts that the process refused or dropped.", ""},
	}
}

func workerFamilies() []Family {
	const withNVML = "where NVML tells it"
	return []Family{
		{WorkerRunning, Gauge, OfWorkers, []string{"stage"}, "Attempts that the process works on.", ""},
		{WorkerUnsent, Gauge, OfWorkers, nil, "Results that are kept because NATS has not taken them yet.", ""},
		{WorkerOutcomes, Counter, OfWorkers, []string{"outcome"},
			"Attempts that ended in the process: ok, failed, lost, handed_back, stale (its fence was refused).", ""},
		{DeviceMemory, Gauge, OfGPU, []string{"device", "state"}, "Memory of a GPU, total and used.", withNVML},
		{DeviceBusy, Gauge, OfGPU, []string{"device"}, "Share of the time in which a kernel ran lately, 0 to 1.", withNVML},
		{DevicePower, Gauge, OfGPU, []string{"device"}, "Electric power.", withNVML},
		{DeviceEnergy, Counter, OfGPU, []string{"device"}, "Electric energy since the driver was loaded.", withNVML},
		{DeviceDriver, Gauge, OfGPU, []string{"device"}, "1 while the driver has no complaint about a GPU.", "with GPUs"},
		{DeviceHealthy, Gauge, OfGPU, []string{"device"}, "1 while the device's engine works and the driver is content.", ""},
		{DeviceAsset, Gauge, OfGPU, []string{"device", "circuit"}, "1 while the parameters of a circuit are ready.", ""},
		{AssetLoads, Counter, OfGPU, []string{"device", "circuit", "outcome"},
			"Loads of a circuit's parameters into an engine: ok or failed.", "once one was loaded"},
		{AssetLoadTime, Histogram, OfGPU, []string{"device", "circuit"}, "How long loads took, s.", "once one was loaded"},
		{AssetEvictions, Counter, OfGPU, []string{"device", "circuit"}, "Circuits whose assets were given back.",
			"once one was evicted"},
		{WrongProofs, Counter, OfGPU, []string{"device"}, "Proofs that the worker itself found wrong.",
			"once the engine was ready"},
		{EngineStarts, Counter, OfGPU, []string{"device"}, "Starts of the device's engine; more than one is a restart.",
			"once the engine was ready"},
	}
}

func rackFamilies() []Family {
	return append([]Family{
		{Leader, Gauge, OfNodes, nil, "1 on the coordinator that leads, 0 on the others.", ""},
		{Term, Gauge, OfNodes, nil, "Reign of the leader; each election raises it.", ""},
		{RackReady, Gauge, OfNodes, nil, "1 while the rack can take work.", ""},
		{RackHalted, Gauge, OfNodes, nil, "1 while nothing is admitted because most devices fail.", ""},
		{IntakePaused, Gauge, OfNodes, nil, "1 while an operator has intake paused.", ""},
		{LedgerUp, Gauge, OfNodes, nil, "1 while the ledger answers in the leader's term.", ""},
		{LedgerAnswer, Gauge, OfNodes, nil, "How long Redis took to answer just now, s.", "while it answers"},
		{Jobs, Gauge, OfNodes, []string{"state"}, "Jobs that are kept.", ""},
		{Partitions, Gauge, OfNodes, []string{"stage"}, "Partitions of jobs that have not ended.", ""},
		{Waiting, Gauge, OfNodes, []string{"reason", "pool"},
			"Partitions that wait, by what they wait for; pool is set when it is memory.", ""},
		{WaitingBytes, Gauge, OfNodes, []string{"reason", "pool"},
			"Bytes that waiting partitions ask for, by what they wait for.", "while any waits"},
		{MissingBytes, Gauge, OfNodes, []string{"pool"}, "Bytes that partitions which wait for memory lack, added up.",
			"while any waits for memory"},
		{QueueOldest, Gauge, OfNodes, nil, "Time since the oldest job that waits was accepted, s; 0 when none waits.", ""},
		{JobsEnded, Counter, OfNodes, []string{"state"}, "Jobs that ended while this coordinator led.", ""},
		{JobSeconds, Histogram, OfNodes, []string{"circuit"}, "Time from accept to proof, s.", "once one is done"},
		{StageSeconds, Histogram, OfNodes, []string{"circuit", "stage"},
			"Time that accepted attempts took for slice, segment, synthesis, start, finish …, s.", "once one is done"},
		{AttemptsEnded, Counter, OfNodes, []string{"outcome"}, "Attempts that ended while this coordinator led.", ""},
		{Retries, Counter, OfNodes, []string{"cause"}, "Partitions that had to be tried again.", ""},
		{BadProofs, Counter, OfNodes, []string{"node", "device"},
			"Proofs that came and did not verify, by the device that made them.", "once a device made one"},
		{DeviceFaults, Counter, OfNodes, []string{"node", "device"},
			"Failed attempts that are the device's fault, proofs that the worker itself found wrong among them.",
			"once a device had one"},
		{ResultsLate, Counter, OfNodes, nil, "Results that came too late and changed nothing.", ""},
	}, nodeFamilies()...)
}

func nodeFamilies() []Family {
	return []Family{
		{Capacity, Gauge, OfNodes, []string{"node", "pool"}, "What a pool of a node has.", ""},
		{Booked, Gauge, OfNodes, []string{"node", "pool", "class", "state"},
			"What the ledger has booked: live and limbo reservations, assets.", "while any is booked"},
		{Declared, Gauge, OfNodes, []string{"node", "pool", "class", "state"},
			"What the node says that it holds: attempts, assets, free segments.", "while it holds any"},
		{Measured, Gauge, OfNodes, []string{"node", "process", "class"},
			"Large buffers that the node's processes count; one that two of them have is counted by both.",
			"once the class was used"},
		{SizeBytes, Gauge, OfNodes, []string{"circuit", "stage", "kind", "pool", "what"},
			"What an attempt takes: computed, p50 and p99 (measured peaks), booked.", "once one was measured"},
		{SizeDrift, Gauge, OfNodes, []string{"circuit", "stage", "kind", "pool"},
			"1 while measured peaks are over what is computed by more than the threshold, -1 under, 0 neither.",
			"once one was measured"},
		{DriftEvents, Counter, OfNodes, nil, "How often drift of a size began or ended in this reign.", ""},
		{NodePresent, Gauge, OfNodes, []string{"node"},
			"1 while a node beats, 0 for one that is gone and not forgotten.", ""},
		{NodeReady, Gauge, OfNodes, []string{"node"}, "1 while a node can take work.", ""},
		{NodeDrained, Gauge, OfNodes, []string{"node"}, "1 while an operator has a node drained or cordoned.", ""},
		{NodeBeatAge, Gauge, OfNodes, []string{"node", "process"}, "Time since a worker's last beat, s.", ""},
		{NodeClock, Gauge, OfNodes, []string{"node"},
			"Clock of a node less that of the leader, s; a beat's way, some ms, counts as behind.", ""},
		{NodeBookOpen, Gauge, OfNodes, []string{"node"}, "1 when a node has declared what it holds: it can be granted.", ""},
		{NodeLeaks, Gauge, OfNodes, []string{"node"}, "Buffers that should be gone.", ""},
		{NodeDevice, Gauge, OfNodes, []string{"node", "device"}, "1 while a device can be given work.", ""},
		{NodeQuarantine, Gauge, OfNodes, []string{"node", "device"}, "1 while a device is in quarantine.", ""},
		{NodeAssetUsers, Gauge, OfNodes, []string{"node", "asset"}, "Attempts that use a shared asset.",
			"while the asset is booked"},
	}
}
