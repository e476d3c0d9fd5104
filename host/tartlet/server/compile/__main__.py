"""The compile child: reads a job from standard input, answers on standard output."""

from tartlet.server.compile.child import main

main()
