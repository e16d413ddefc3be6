package store

// FairShare is fairShare.
func FairShare(room int64, wants []int64) int64 { return fairShare(room, wants) }

// Sizes of a job of ten partitions, and how many partitions that is.
const (
	TypicalRecordBytes, TypicalAuditBytes = typicalRecordBytes - entryBytes, typicalAuditBytes - entryBytes
	TypicalPartitions                     = typicalPartitions
)
