"""Starts the supervision process by file path: ``python -I -S _start.py FD PID``.

Without site-packages the start is fast. Only the directory that contains this ``runner`` is added
to the path, after the standard library.
"""

import gc
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    gc.disable()
    from runner.supervise.server import main

    gc.freeze()
    gc.enable()
    main(int(sys.argv[1]), int(sys.argv[2]))
