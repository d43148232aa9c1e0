"""The tests; a package, since the wheel of verl 0.9.1 brings a package `tests` of its own."""
