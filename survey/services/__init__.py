"""One function per use case, one module per subject. Services reach instruments and panels only by their contracts."""
