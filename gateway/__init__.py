"""HTTP: verifies, stores, emits. It imports no flow, and its answers say no more than they must."""
