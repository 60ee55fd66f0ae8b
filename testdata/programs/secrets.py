"""Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of objects."""
import array
import collections
import ctypes
import sys
import time
import types


class Account:
    def __init__(self, secret):
        self.secret = secret
        self.text = secret.hex()


class Slots:
    __slots__ = ("secret", "number")


def wait(secret):
    text = secret.decode("latin-1")
    yield text
    yield secret


def keep(secret):
    text = secret.decode("latin-1")
    slots = Slots()
    slots.secret = text
    slots.number = int.from_bytes(secret[:8], "little")
    waiting = wait(secret)
    next(waiting)
    raw = ctypes.create_string_buffer(secret)
    setattr(holder, "of" + str(len(kept)), text)
    by_text[text] = secret
    by_bytes[secret] = Account(secret)
    by_number[slots.number] = [float(slots.number), complex(slots.number, 1)]
    texts.add(text + "in a set")
    queue.append(text.encode("utf-16-le"))
    ordered[text + "ordered"] = -slots.number
    kept.append((slots, waiting, raw, bytearray(secret), text + "\u0151", text + "\U0001f511",
                 int.from_bytes(secret, "big"), lambda: text, memoryview(secret)))
    numbers.append(slots.number)


holder = types.SimpleNamespace()
by_text, by_bytes, by_number, texts, kept = {}, {}, {}, set(), []
queue, ordered, numbers = collections.deque(), collections.OrderedDict(), array.array("Q")
with open(sys.argv[1], encoding="ascii") as file:
    for line in file:
        keep(bytes.fromhex(line))
print("ready", flush=True)
time.sleep(1e6)
