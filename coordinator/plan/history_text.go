package plan

const historyIntro = `# The planner against the published history

Made by ` + "`make plan-history`" + `; simulated time, so no machine and no noise: the same source gives the same file, and a test compares it. The
published rows are measurements of a one-box GPU prover for 32 GiB PoRep (one RTX 5070 Ti, 96 cores, 755 GiB, vectors at full width, all
partitions of a sector on one box). Its own words: *workers* (pw) are partitions in synthesis or waiting for the card at once, *feeders* (gw) are
threads that feed the card.

## The profile

One profile, ` + "`one-box-32gib`" + `, for all rows. No row's result is in it, and nothing in it was adjusted to a row. Its numbers:

| number | value | published as |
|---|---|---|
| synthesis of a partition, alone | 29 s | lower end of "29–36 s" |
| …, 10 at once | 35.5 s | measurement of synthesis by itself (26.5 s of witness, 8.8 s of products) |
| …, 20 at once | 47.5 s | the same, 46 to 49 s |
| card, a partition | 3.75 s | its effective time with upload, measured by its time line |
| handed to the card | 15.5 GiB | size of a, b, c and assignment |
| at the peak of synthesis | 19.4 GiB | the same and one more vector |
| parameters | 44.1 GiB | their file |
| matrices | 25.7 GiB | resident, once; together 69.8 of "69–70 GiB idle" |
| cores, memory of the box | 96, 755 GiB | |

What must be said about them: 3.75 s was measured on the same system when it was bound by its card, so that the rows with 20 proofs come out
near 37.5 s is no surprise; what is left to the planner there are the ends of the pipeline. The rows below 10 workers are bound by
synthesis, and there only 29 s and the curve count. The sizes leave open *when* within a stage memory is taken: the planner takes each at its peak
from the first second of its stage (*held*). *Booked* is 19.4 GiB for the whole path, as a ledger would book it.

`

const historyRowsHead = `## Row by row

| workers | feeders | proofs | s/proof, published | planned | off | peak RSS, published (GiB) | held | off | booked | card idle |
|---|---|---|---|---|---|---|---|---|---|---|
`

const historyPileUpHead = `
## The permit

12 workers, two feeders, 20 proofs at once. Published with the permit given back at the end of synthesis: up to 28 finished partitions
waiting, 668 GiB on a box with 755, then killed; with the permit held until the card takes the partition: 400 GiB (294.7 in an earlier report).

| permit | box | partitions waiting, at most | held, at most | end |
|---|---|---|---|---|
`

const historyPileUpEnd = `
With the permit held the peak is that of the rows with 12 workers above, being the same run. That the box dies with as many partitions waiting as
were published comes from the sizes alone: 755 GiB less assets, workers and feeders, in units of 15.5.

`

const historyOursHead = `## The same hardware, our sizes and policy

20 proofs at once. Ours is the real scheduler with its default settings and the profile ` + "`proofrack-card-32gib`" + `: synthesis and sizes as measured on two
cores, **the card assumed**, since no GPU prover of this project has been measured. 3.75 s is the card's time in the one-box system with its uploads at
full width, 1.8 and 0.95 s the ends of its published kernel times. Memory is the most that is booked.

| | cores | GiB | s/proof | proofs an hour | booked, GiB | card idle | bottleneck |
|---|---|---|---|---|---|---|---|
`

const historyRivalHead = `
## The rival: one such box each, the client spreads whole sectors

Four boxes with one card each, all jobs at once. The client gives each sector to the box with the fewest unfinished ones. In each cell: rival / ours
with the card at 3.75 s / ours at 1.8 s.

| proofs | all done after, s | proofs an hour | median from submission to proof, s |
|---|---|---|---|
`

const historyEnd = `
## What these tables do not tell

- Failures, restarts and other work on the machines are not simulated. Nor are a box's swapping or slowing down before it is killed.
- Times do not depend on load unless the profile says so. The card's does not: see the row with 30 workers.
- "Card idle" is the share of time in which no partition is on the card. The published "kernels busy 46 %" counts pauses within a partition too.
- Ours is a plan until a card has been measured; ` + "`proofrack plan profile`" + ` makes a profile from measurements.
`
