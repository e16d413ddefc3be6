// Tidy checks the parts of the house style that a compiler and general linters cannot see: who may import whom, how
// long functions, files and lines are, whether packages are described, whether doc links and paths in Markdown lead
// anywhere, whether declarations and test data are used, and whether each field report that is due has a test that
// names it.
//
// It reads the source as text and syntax; it builds nothing. Each rule is a function from the loaded repository to its
// findings. Every rule has a test that shows it bite. The two files it is steered by lie beside it:
//
//   - exceptions.txt: functions that may be longer than the screen, each with its present length. A function that has
//     become shorter must have its entry lowered or removed, so the numbers can only fall.
//   - field_reports.txt: the rows of the field reports, the issue each is due in, and the test or decision that settles
//     it.
//
// Run it in the tools module as "go run ./tidy"; it finds the checkout by walking up to go.work.
package main
