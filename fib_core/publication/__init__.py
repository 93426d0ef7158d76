"""What lies in a store around an index: signatures, history, what may be collected."""
