"""A study that is open to anybody with the address: no panel sends people, and nobody is paid."""
