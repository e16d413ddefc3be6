// Package groupdir makes the folders that programs of one group share in a spill folder.
package groupdir
