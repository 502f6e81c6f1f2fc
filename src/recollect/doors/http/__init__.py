"""The HTTP door: a daemon on the loopback interface and on a Unix socket. Importing this package loads nothing."""
