"""`python -m tartlet.server.engine`: started by the front."""

import sys

from tartlet.server.engine.process import main

sys.exit(main(sys.argv[1:]))
