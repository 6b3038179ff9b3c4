// Package published plays the experiments of others, and holds the laboratory's algorithms to the
// figures that were published of them. All of it is tests. Their figures and ours stand in files
// of testdata, from which package report draws the plots of docs.
//
// With -update, go test writes the files anew; the plots follow by the same flag of package
// report's TestPlotsOfStudies.
package published
