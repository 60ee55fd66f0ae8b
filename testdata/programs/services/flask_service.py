"""A service whose sessions stay, and that loses blocks of malloc's. /truth says what CACHE holds."""
import ctypes
import gc
import sys
import types

from flask import Flask
from werkzeug.serving import make_server

app = Flask(__name__)
CACHE = {}
C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p


@app.route("/fill/<int:count>")
def fill(count):
    for number in range(count):
        CACHE[f"user {number}"] = {"name": f"session {number} " * 300,
                                   "pages": [f"page {number}.{i}" for i in range(50)]}
    return "filled"


@app.route("/lose/<int:count>")
def lose(count):
    for _ in range(count):
        ctypes.memset(C.malloc(5000), 1, 5000)
    return "lost"


@app.route("/truth")
def truth():
    seen, todo = {}, [CACHE]
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, (type, types.ModuleType)):
            # pymalloc hands out multiples of 16 bytes.
            seen[id(one)] = (sys.getsizeof(one) + 15) // 16 * 16
            todo += gc.get_referents(one)
    return str(sum(seen.values()))


server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.port)
print("ready", flush=True)
server.serve_forever()
