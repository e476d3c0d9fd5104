"""The languages that programs are written in: what files are a program, how it is built, and how it runs from source.

One module for each, which makes a `Language` (`language`); `registry` has them all, and tells which one a path is of.
"""
