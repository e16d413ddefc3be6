package store

// FairShare is fairShare.
func FairShare(room int64, wants []int64) int64 { return fairShare(room, wants) }
