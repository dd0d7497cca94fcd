"""Where data lies: the database, files in a folder or a bucket, and which errors say that one is away."""
