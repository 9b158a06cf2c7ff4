"""Run a module in the server of `forks`, from a script: ``python -IS forked_command.py SOCKET MODULE ARGUMENT...``.

The script starts in 20 ms. Signals to its process do not reach the forked process.
"""

from __future__ import annotations

import json
import os
import socket
import sys

if __name__ == "__main__":
    address, module, *arguments = sys.argv[1:]
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109  importing pathlib takes as long as everything else here
        "descriptors": [0, 1, 2],
        "new_session": False,
    }
    message = json.dumps(request).encode() + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(address)
        server.sendall(message[socket.send_fds(server, [message], [0, 1, 2]) :])
        _, code = server.makefile()
    sys.exit(int(code))
