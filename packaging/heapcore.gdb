# heapcore within gdb: what is at an address of the program that is stopped?
#
#	gdb -x /usr/share/heapcore/heapcore.gdb PROGRAM
#	(gdb) heapcore explain $rdi
#	(gdb) heapcore describe conn->buffer
#	(gdb) heapcore summarize leaked
#
# A core is taken where the program stands, once for all commands until it goes on.
# Words that are expressions of gdb, such as $rdi, conn->buffer or &server, become
# addresses. $HEAPCORE is the program to ask; without it, `heapcore`.
python

import gdb
import os
import subprocess
import tempfile


class Heapcore(gdb.Command):
    """Ask heapcore about the memory of the program: heapcore COMMAND WORDS..."""

    def __init__(self):
        super().__init__("heapcore", gdb.COMMAND_DATA)
        self.core = None
        for event in (gdb.events.cont, gdb.events.exited, gdb.events.memory_changed,
                      gdb.events.register_changed, gdb.events.gdb_exiting):
            event.connect(self.forget)

    def forget(self, _=None):
        if self.core:
            os.unlink(self.core)
        self.core = None

    def take_core(self):
        if self.core:
            return
        file, path = tempfile.mkstemp(prefix="heapcore-")
        os.close(file)
        self.core = path
        gdb.execute(f"generate-core-file {path}", to_string=True)

    @staticmethod
    def evaluated(word):
        if not any(character in word for character in "$&*.[") and "->" not in word:
            return word
        try:
            value = gdb.parse_and_eval(word)
            if value.type.strip_typedefs().code == gdb.TYPE_CODE_ARRAY:
                value = value.address
            return hex(int(value) & (1 << 64) - 1)
        except (gdb.error, ValueError):
            return word

    def invoke(self, argument, from_tty):
        words = [self.evaluated(word) for word in gdb.string_to_argv(argument)]
        try:
            self.take_core()
        except gdb.error as error:
            self.forget()
            raise gdb.GdbError(f"no core can be taken: {error}")
        run = subprocess.run([os.environ.get("HEAPCORE", "heapcore"), "-q", self.core, *words],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        gdb.write(run.stdout)


Heapcore()
end
