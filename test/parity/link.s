// Without an assembly file in the package the compiler refuses functions without a
// body, such as the linknames of link_test.go.
