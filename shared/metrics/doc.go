// Package metrics is how every process shows numbers to Prometheus.
//
// Families lists all metrics of all programs, with type, labels and help; nothing else can be shown, and
// docs/metrics.md is made from the list. A Registry collects one role's: Sources, functions that read the truth when it
// is asked for (books, records, reports), and Tallies and Times, which count what leaves no truth behind (an attempt
// that ended). It owns no truth of its own.
//
//	scrape ─► Handler ─► each Source, within Config.Within ─► Emitter ─► text
//
// Limits: a family shows at most Config.SeriesMax series; what is over that is left out and counted
// (c2_metrics_left_out). A Source that does not answer in time costs its own families only (c2_metrics_source_up).
// Label values are names that an operator gave or that a table in the code has; jobs, traces, paths and processes are
// no labels.
//
// A family or a number of labels that the list does not have is a fault of the program and panics.
package metrics
