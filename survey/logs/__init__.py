"""What a log line or a report of an error says, and the id by which a request is looked for in them."""
