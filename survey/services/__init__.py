"""One use case a function, a module a subject. Services reach instruments and panels only through registries."""
