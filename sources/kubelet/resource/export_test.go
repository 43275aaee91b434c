package resource

// Names returns how many names are kept.
func (p *Parser) Names() int { return p.names.known }
