package attempt

// Die has all runs end as the kernel ends those of a killed process: locks are dropped, nothing is removed.
func (b *Board) Die() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.running {
		if k := r.mark; k != nil && k.file != nil {
			k.mu.Lock()
			_ = k.file.Close()
			k.file = nil
			k.mu.Unlock()
		}
	}
}
