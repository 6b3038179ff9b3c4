module github.com/bmqelect/bmqelect

go 1.26
