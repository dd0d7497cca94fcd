"""What is asked: one folder an instrument, each a Django app with the same files. The core never imports one."""
