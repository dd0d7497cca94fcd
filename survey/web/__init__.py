"""Between the network and a page: the worker that reads requests, middleware, addresses, and who is locked out."""
