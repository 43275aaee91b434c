package death

// Causes returns all causes, in the order of the documents.
func Causes() (all []Cause) {
	for i := range table {
		all = append(all, table[i].cause)
	}
	return all
}
