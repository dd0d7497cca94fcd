"""The processes beside the web's: what `hunch up` runs, their queues, and how much of a machine they take."""
