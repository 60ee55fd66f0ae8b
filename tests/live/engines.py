"""
Engines that spread a fleet over machines, and databases that ask it: each is started here alone, by
root, on the loopback or a Unix socket, with files of its own, and ended with the test. What is not
installed ('scripts/test --engines' does that) skips the test.
"""

import contextlib
import glob
import os
import re
import shutil
import socket
import subprocess
import time

import harness

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
WAIT = 30  # seconds until a service answers


def need(*programs):
    """Their paths."""
    path = os.environ["PATH"] + os.pathsep + SYSTEM_FOLDERS
    found = [shutil.which(program, path=path) for program in programs]
    for program, where in zip(programs, found):
        if not where:
            raise harness.Skipped(f"there is no {program}")
    return found


def need_root():
    if os.geteuid() != 0:
        raise harness.Skipped("services are started by root only")


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8", opener=lambda *how: os.open(*how, mode)) as file:
        file.write(text)
    return path


@contextlib.contextmanager
def service(command, answers, log, **options):
    """The service, once answers() is true; ended in the end."""
    with open(log, "ab") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   **options)
    try:
        deadline = time.monotonic() + WAIT
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise RuntimeError(f"{command[0]} does not answer:\n{file.read()}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            harness.end(process)


def is_fine(*command, **options):
    return harness.run(*command, **options).returncode == 0


@contextlib.contextmanager
def folder_of_sshd():
    """The one that sshd wants to be there."""
    path = "/run/sshd"
    is_new = not os.path.exists(path)
    if is_new:
        os.mkdir(path, 0o755)
    try:
        yield
    finally:
        if is_new:
            os.rmdir(path)


@contextlib.contextmanager
def ssh_hosts(folder, names, path):
    """
    A server of ssh that only this machine reaches, with keys of its own, whose sessions have that
    PATH; ret: options of ssh, by which the names are hosts.
    """
    need_root()
    sshd, keygen, ssh = need("sshd", "ssh-keygen", "ssh")
    port = free_port()
    for key in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"],
                       check=True)
    with open(f"{folder}/host.pub", encoding="ascii") as file:
        write(f"{folder}/known", f"host {file.read()}")
    server = write(f"{folder}/sshd_config", f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
SetEnv PATH={path}
""")
    client = write(f"{folder}/ssh_config", f"""
Host {' '.join(names)}
HostName 127.0.0.1
HostKeyAlias host
Port {port}
User root
IdentityFile {folder}/user
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile none
StrictHostKeyChecking yes
""")
    with folder_of_sshd(), service(
            [sshd, "-D", "-e", "-f", server],
            lambda: is_fine(ssh, "-F", client, names[0], "true"), f"{folder}/sshd.log"):
        yield f"{ssh} -F {client}"


@contextlib.contextmanager
def munge(folder):
    """The socket of a munged."""
    (munged, ask) = need("munged", "munge")
    key, path = f"{folder}/munge.key", f"{folder}/munge.socket"
    with open(key, "wb", opener=lambda *how: os.open(*how, 0o600)) as file:
        file.write(os.urandom(1024))
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    with service([munged, "--foreground", f"--socket={path}", *files],
                 lambda: is_fine(ask, "-n", "-S", path), f"{folder}/munged.log"):
        yield path


SLURM = """
ClusterName=heapcore
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={munge}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=64000
PartitionName=all Nodes=ALL Default=YES
"""


def slurm_version(daemon):
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", harness.run(daemon, "-V").stdout).groups()))


@contextlib.contextmanager
def slurm(folder):
    """A cluster of Slurm that is this machine: variables for its commands."""
    need_root()
    controller, daemon, info = need("slurmctld", "slurmd", "sinfo", "sbatch")[:3]
    os.chmod(folder, 0o755)  # munged wants all to reach its socket
    os.mkdir(f"{folder}/state")
    os.mkdir(f"{folder}/spool")
    with munge(folder) as path:
        ports = free_port(), free_port()
        config = write(f"{folder}/slurm.conf",
                       SLURM.format(munge=path, folder=folder, ports=ports))
        # Newer ones ask systemd for a group otherwise; older ones do not know this.
        if slurm_version(daemon) >= (24, 5):
            write(f"{folder}/cgroup.conf", "CgroupPlugin=disabled\n")
        variables = {"SLURM_CONF": config}
        given = {"env": {**os.environ, **variables}}

        def is_idle():
            return "idle" in harness.run(info, "-h", "-o", "%T", **given).stdout

        with service([controller, "-D", "-f", config],
                     lambda: is_fine(info, **given), f"{folder}/slurmctld.log", **given), service(
                         [daemon, "-D", "-f", config, "-N", "localhost"], is_idle,
                         f"{folder}/slurmd.log", **given):
            yield variables


def as_user(name):
    """What starts a command as that user, whom root must not be."""
    return ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups"] if (
        os.geteuid() == 0) else []


@contextlib.contextmanager
def postgres(folder):
    """A cluster of PostgreSQL with no port: variables for psql."""
    versions = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(
        path.split("/")[-2]))
    if not versions:
        raise harness.Skipped("there is no postgres")
    (psql,) = need("psql")
    data = f"{folder}/postgres"
    user = as_user("postgres")
    os.mkdir(data, 0o700)
    os.chmod(folder, 0o755)
    if user:
        shutil.chown(data, "postgres", "postgres")
    subprocess.run([*user, f"{versions[-1]}/initdb", "-D", f"{data}/data", "-U", "heapcore", "-E",
                    "UTF8", "--locale=C", "-A", "trust", "--no-sync"], check=True, cwd=data,
                   stdout=subprocess.DEVNULL)
    variables = {"PGHOST": data, "PGUSER": "heapcore", "PGDATABASE": "postgres"}
    with service([*user, f"{versions[-1]}/postgres", "-D", f"{data}/data", "-k", data,
                  "-c", "listen_addresses=", "-c", "fsync=off"],
                 lambda: is_fine(psql, "-qc", "", env={**os.environ, **variables}),
                 f"{folder}/postgres.log", cwd=data):
        yield variables


def node_modules(*names):
    """The folder where scripts/test has npm put these."""
    need("node")
    folder = os.path.join(harness.ROOT, "build", "npm", "node_modules")
    for name in names:
        if not os.path.isdir(os.path.join(folder, name)):
            raise harness.Skipped(f"there is no {name} of npm")
    return folder
