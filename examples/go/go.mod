module libring/examples

go 1.19

require libring/ring v0.0.0

// The package lies in this checkout; nothing is downloaded.
replace libring/ring => ../../bindings/go
