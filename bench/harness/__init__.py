"""The benchmark harness: cases in, measurements out (bench/README.md has the protocol)."""
